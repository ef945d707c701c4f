"""A text file whose lines do not fit its header is refused, whatever pandas makes of it."""

import csv
import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

import pdp_calibrate as pdp
from pdp_calibrate.frames import lines
from pdp_calibrate.frames.files import Source
from tests.support.cli_runs import fine, refused
from tests.support.marks import examples
from tests.support.plans import plan_text

CELL = "9731"


@pytest.fixture
def read(tmp_path):
    def reading(text, *, name="people.csv", **options):
        place = tmp_path / name
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Source(file=place, **options).read()

    return reading


def refusal(read, text, **options):
    with pytest.raises(pdp.SourceError) as caught:
        read(text, **options)
    assert CELL not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("separator", "name"),
    [(",", "p.csv"), ("\t", "p.tsv"), (";", "p.csv"), ("|", "p.txt"), (" ", "p.csv")],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("rows", "line", "fields"),
    [
        (["1,9731,3,", "2,5,4"], 2, 4),  # pandas: home becomes the incomes
        (["1,9731,3,", "2,5,4,"], 2, 4),
        (["1,9,731,3", "2,5,4"], 2, 4),  # unquoted thousands
        (["1,5,3", "2,9731,4,"], 3, 4),
        (["1,5,3", "2,9731"], 3, 2),  # pandas: a missing cell
        (["1,5,3", "9731"], 3, 1),
        (["1,5,3", "", "2,9731"], 4, 2),
        (['1,5,"3', '4"', "2,9731"], 4, 2),
        (['1,5,3"', "2,9731", '3,"5",4'], 3, 2),  # a quote inside a field is text
        (["1,9731"], 2, 2),
        (["1,5,3", "2,9731,4,5,6"], 3, 5),
    ],
)
def test_a_line_that_does_not_fit_is_refused_by_its_number(
    read, rows, line, fields, separator, name, end
):
    text = end.join(["home,pay,age", *rows]).replace(",", separator)
    for last in ("", end):
        words = refusal(read, text + last, name=name, delimiter=separator)
        assert f"line {line} has {fields} field" in words
        assert "header names 3 columns" in words


def test_one_line_in_a_long_file_is_found(read):
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        frame = pd.DataFrame({"home": np.arange(60_000), "name": 'a,"b"\nc', "pay": 5})
        text = frame.to_csv(index=False, quoting=quoting)
        assert read(text).equals(frame)
        mark = "5" if quoting == csv.QUOTE_MINIMAL else '"5"'
        for at in (0, 30_001, 59_999):
            records = text.split(f",{mark}\n")
            records[at] += f",{mark}"
            words = refusal(read, f",{mark}\n".join(records))
            assert f"line {2 * at + 2} has 4 fields" in words


def records_in(text):
    """All records but blank ones, from the reader of the standard library."""
    written = []
    source = (written.append(line) or line for line in io.StringIO(text, newline=""))
    records = []
    for fields in csv.reader(source):
        if "".join(written).strip(" \r\n"):
            records.append(fields)
        written.clear()
    return records


pieces = st.lists(st.sampled_from(["a", "1", ",", '"', "\n", "\r", "\r\n", " ", '","', "å"]))


@examples(200, 3000)
@given(text=pieces.map("".join), at_once=st.integers(1, 12), row_names=st.booleans())
@example(text='a,b\r\n1,"2\r\n3"\r\n', at_once=5, row_names=False)
@example(text='a,b\n1,2"\n"3,4', at_once=4, row_names=False)
@example(text="a\n \n1\n", at_once=3, row_names=False)
def test_pieces_are_records_that_fit_however_the_file_is_cut(text, at_once, row_names):
    records = records_in(text)
    whole = lines._AT_ONCE
    lines._AT_ONCE = at_once
    try:
        checked = lines.CheckedLines(io.BytesIO(text.encode()), ",", row_names=row_names)
        read = io.BufferedReader(checked).read().decode()
    finally:
        lines._AT_ONCE = whole
    header = records[0] if records else []
    assert checked.header == header
    wanted = len(header) + (row_names and header[:1] != [""])
    fit = [len(one) == wanted for one in records[1:]]
    fitting = fit.index(False) if False in fit else len(fit)
    assert bool(checked.problem) == (False in fit)
    assert checked.records == fitting
    assert text.startswith(read)
    assert records_in(read) == records[: fitting + 1]
    assert checked.problem or read == text


def test_quoted_delimiters_and_newlines_are_no_ends(read):
    frame = pd.DataFrame(
        {"home": [1, 2], "note, of": ["a,b\n,\r\nc", 'she said "no", twice'], "pay": [5.5, 6.0]}
    )
    for separator in ",;\t|":
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC):
            text = frame.to_csv(index=False, sep=separator, quoting=quoting)
            assert read(text, delimiter=separator).equals(frame)
    assert read('\ufeff"home","pay"\r\n\r\n1,"2"\r\n').to_dict("list") == {"home": [1], "pay": [2]}
    assert "not closed" in refusal(read, 'home,pay\n1,"9731\n')


def test_names_of_rows_are_asked_for(read):
    """R's write.table leaves the first name out; its write.csv leaves it empty."""
    left_out = '"home","pay"\n"1",7,9731\n"2",8,6\n'
    words = refusal(read, left_out)
    assert "--index (index_col = true in a plan)" in words
    frame = pd.DataFrame({"home": [7, 8], "pay": [9731, 6]})
    assert read(left_out, index_col=True).equals(frame)
    assert read('"",' + left_out, index_col=True).equals(frame)
    words = refusal(read, frame.to_csv(index=False), index_col=True)
    assert "line 2 has 2 fields, and the header names 2 columns beside the name" in words
    assert "--index" not in refusal(read, left_out + '"3",1\n', index_col=True)
    with pytest.raises(pdp.SourceError, match="text files"):
        Source(sql="select 1", index_col=True)


def test_two_columns_of_one_name_are_refused_as_in_frames(read, tmp_path):
    for header in ("home,home,pay", '"home","home","pay"', "home,home,home.1"):
        words = refusal(read, f"{header}\n1,2,3\n")
        assert "columns 1 and 2 of" in words
        assert "home" not in words.replace(str(tmp_path), "")
    with pytest.raises(pdp.SourceError, match="have the same name"):
        Source(file=tmp_path / "people.csv").header()
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["home", "home"])
    pq.write_table(twice, tmp_path / "people.parquet")
    with pytest.raises(pdp.SourceError, match="have the same name"):
        Source(file=tmp_path / "people.parquet").read()


def test_compressed_files_are_checked_too(read, tmp_path):
    text = b"home,pay\n1,2\n2,9731,\n"
    with zipfile.ZipFile(tmp_path / "inside.zip", "w") as archive:
        archive.writestr("people.csv", text)
    packed = {"p.csv.gz": gzip.compress(text), "p.csv.zip": (tmp_path / "inside.zip").read_bytes()}
    for name, content in packed.items():
        assert "line 3 has 3 fields" in refusal(read, content, name=name)
    for name, content in packed.items():
        assert "cannot be read" in refusal(read, content[:-5], name=name)


SHIFTED = "home,pay,sick\n1,10,true,\n1,20,false\n2,30,true\n"
ABOUT = "--groups home --bounds pay=0:100"


@pytest.mark.parametrize(
    "command",
    [
        f"release p.csv -q 'sum(pay)' {ABOUT} -e 1",
        f"calibrate p.csv -q 'sum(pay)' {ABOUT} -e 1",
        f"leakage p.csv -q 'sum(pay)' {ABOUT} --scale 100",
        "fit p.csv --kind gaussian --columns pay --bounds pay=0:100 --public",
        f"people create b.json p.csv {ABOUT} -e 1",
        "advise p.csv",
        "explore p.csv --no-browser",
        "plan plan.toml",
    ],
)
def test_every_command_refuses_lines_that_do_not_fit(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(SHIFTED)
    question = {"query": "sum(pay)", "epsilon": 0.5}
    said = {"model": {"bounds": {"pay": [0, 100]}}, "budget": {"epsilon": 1.0}}
    (tmp_path / "plan.toml").write_text(
        plan_text(question, data={"file": "p.csv", "groups": "home"}, **said)
    )
    assert "line 2 has 4 fields" in refused(command)
    assert not (tmp_path / "b.json").exists()


def test_names_of_rows_on_the_command_line_and_in_plans(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("home,pay\n1,1,10\n2,1,20\n3,2,30\n")
    ask = "-q 'sum(pay)' --groups home --bounds pay=0:100 -e 1 --json"
    assert "--index" in refused(f"calibrate p.csv {ask}")
    assert fine(f"calibrate p.csv {ask} --index").json["scale"] == pytest.approx(200)
    question = {"query": "sum(pay)", "epsilon": 0.5}
    data = {"file": "p.csv", "groups": "home", "index_col": True}
    said = {"model": {"bounds": {"pay": [0, 100]}}, "budget": {"epsilon": 1.0}}
    (tmp_path / "plan.toml").write_text(plan_text(question, data=data, **said))
    fine("plan plan.toml")
