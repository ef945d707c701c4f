"""One declaration of what can be asked: what `df.pdp`, the command line and plans take."""

import inspect

import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.accessor import PdpAccessor
from pdp_calibrate.cli.main import app
from pdp_calibrate.jobs.grammar import parse_query
from pdp_calibrate.jobs.job import OPTIONS, PYTHON, Job, Learning, declared
from pdp_calibrate.jobs.plan import PLAN
from tests.support.cli_runs import refused

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

LEARNING = declared(Learning)
VERBS = ("sum", "mean", "linear", "count", "histogram")
WIDE = pd.DataFrame({"a": [0, 1, 1, 0], "b": [1, 1, 0, 0]})
LONG = pd.DataFrame({"home": [1, 1, 2], "x": [0.1, 0.2, 0.3]})
PAIR = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)


@pytest.mark.parametrize("verb", VERBS)
def test_methods_show_every_option_with_its_default_and_meaning(verb):
    method = getattr(PdpAccessor, verb)
    parameters = inspect.signature(method).parameters
    for name, option in OPTIONS.items():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default == (inspect.Parameter.empty if option.needed else None)
        assert parameters[name].annotation is not inspect.Parameter.empty
        assert f"\n{name}\n    {option.words[:30]}" in method.__doc__
    assert not any(one.kind is one.VAR_KEYWORD for one in parameters.values())


LONG_SAID = {"groups": "home", "bounds": (0, 1)}
ASKS = {
    "a sum": lambda **more: LONG.pdp.sum("x", **LONG_SAID, **more),
    "a mean": lambda **more: LONG.pdp.mean("x", **LONG_SAID, **more),
    "a count": lambda **more: LONG.pdp.count({"x": [1]}, groups="home", **more),
    "a histogram": lambda **more: WIDE.pdp.histogram(model=PAIR, **more),
    "weights": lambda **more: WIDE.pdp.linear({"a": 1}, model=PAIR, **more),
    "as text": lambda **more: LONG.pdp.calibrate("sum(x)", **LONG_SAID, **more),
    "a query": lambda **more: WIDE.pdp.calibrate(pdp.Sum(), model=PAIR, **more),
    "people": lambda **more: pdp.People(LONG, **LONG_SAID, epsilon=9.0).sum("x", **more),
    "a price": lambda **more: pdp.People(LONG, **LONG_SAID).calibrate.sum("x", **more),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_how_much_may_be_learned_is_asked_for(ask, monkeypatch):
    """It has no default; both ways to say it are named, in Python and on the command line."""
    with pytest.raises(pdp.QueryError, match=r"epsilon=1.0 \(--epsilon 1\).*belief=.*--belief"):
        ask()
    with pytest.raises(pdp.QueryError, match="epsilon="):
        ask(belief=None)
    found = ask(belief=(0.5, 0.731))
    assert getattr(found, "calibration", found).epsilon == pytest.approx(1.0, abs=1e-3)
    monkeypatch.setattr("pdp_calibrate.frames.files.Source.read", lambda _: pytest.fail("read"))
    with pytest.raises(pdp.PdpError, match="epsilon"):
        ask(epsilon=0.5, belief=(0.5, 0.7))


def test_what_is_left_of_a_ledger_is_asked_for_by_none_alone():
    blocks = pdp.Blocks(models=[pdp.Unknown(size=1, bounds=(0, 1))], counts=[len(LONG)])
    with pytest.raises(pdp.QueryError, match="epsilon=None"):
        LONG.pdp.sum("x", **LONG_SAID, ledger=pdp.Ledger(blocks))
    with pytest.raises(pdp.PdpError, match="give ledger="):
        LONG.pdp.sum("x", **LONG_SAID, epsilon=None)


def test_the_command_line_asks_before_it_reads_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LONG.to_csv("people.csv", index=False)
    pdp.People(LONG, **LONG_SAID, ledger="people.json")
    monkeypatch.setattr("pdp_calibrate.jobs.run.model_of", lambda *_, **__: pytest.fail("learned"))
    about = "people.csv -q 'sum(x)' --groups home --bounds 0:1"
    for line in (
        f"release {about}",
        f"calibrate {about}",
        f"release {about} --kind groups",
        "people release people.json people.csv -q 'sum(x)'",
        "people price people.json people.csv -q 'sum(x)'",
    ):
        message = refused(line)
        assert "--epsilon 1" in message
        assert "--belief 1%:3%" in message


def called(declared):
    """Return the name of an option on the command line."""
    name, option = declared
    return option.flags[0].strip("-").replace("-", "_") if option.flags else name


def test_the_command_line_and_plans_take_every_option():
    (release,) = (
        one.callback for one in app.registered_commands if one.callback.__name__ == "release"
    )
    taken = inspect.signature(release).parameters
    (fit,) = (one.callback for one in app.registered_commands if one.callback.__name__ == "fit")
    everywhere = {name: one for name, one in OPTIONS.items() if one.group is not PYTHON}
    assert set(map(called, everywhere.items())) <= set(taken)
    assert set(map(called, LEARNING.items())) <= set(inspect.signature(fit).parameters)
    sections = PLAN["properties"] | {"queries": PLAN["properties"]["queries"]["items"]}
    for declaration in (OPTIONS, LEARNING):
        for name, option in declaration.items():
            if option.group is PYTHON:
                continue
            described = sections[option.group.section]["properties"][option.key or name]
            if name != "epsilon":  # in several sections, each with its own meaning
                assert described["description"] == option.words


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: LONG.pdp.sum("x", bounds=(0, 1), group="home", epsilon=1.0),
            "df.pdp.sum takes no argument 'group'; did you mean groups?",
        ),
        (lambda: LONG.pdp.mean("x", bound=(0, 1), groups="home"), "did you mean bounds?"),
        (lambda: WIDE.pdp.count(value={1}, model=PAIR), "'value'; did you mean values?"),
        (lambda: WIDE.pdp.histogram(category=[0], model=PAIR), "did you mean categories?"),
        (lambda: WIDE.pdp.linear({"a": 1}, modle=PAIR, epsilon=1.0), "did you mean model?"),
        (lambda: WIDE.pdp.calibrate(pdp.Sum(), model=PAIR, epsilom=1), "did you mean epsilon?"),
        (lambda: WIDE.pdp.leakage(pdp.Sum(), model=PAIR, scales=1), "did you mean scale?"),
        (lambda: WIDE.pdp.release(None, legder=None), "did you mean ledger?"),
        (lambda: LONG.pdp.sum("x", bounds=(0, 1), groups="home", zzz=1), "there is columns,"),
        (lambda: LONG.pdp.sum("x", bounds=(0, 1), groups="home", per="x"), "no argument 'per'"),
    ],
)  # fmt: skip
def test_a_misspelt_argument_is_refused_with_the_nearest(call, words):
    with pytest.raises(pdp.QueryError) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.usefixtures("bare_answers")
def test_a_weighted_sum_is_asked_like_the_others():
    found = WIDE.pdp.linear({"a": 2, "b": -1}, model=PAIR, epsilon=0.7)
    assert found.value == 2 * 2 - 2
    query = pdp.Linear(weights={"a": 2, "b": -1})
    assert found.calibration.scale == pdp.calibrate(PAIR, query, epsilon=0.7, rows=4).scale
    with pytest.raises(pdp.QueryError, match="weights tell columns apart"):
        LONG.pdp.linear({"x": 2}, groups="home", bounds=(0, 1), epsilon=1.0)


@pytest.mark.parametrize(
    ("options", "learning", "words"),
    [
        ({"model": PAIR, "bounds": (0, 1)}, {}, "the model is given"),
        ({"model": PAIR}, {"kind": "table"}, r"would make another one \(kind\)"),
        ({"bounds": (0, 1)}, {}, "name the column of the groups"),
        ({"groups": "g", "bounds": (0, 1), "assume": "gaussian"}, {}, "give both"),
        ({"groups": "g", "correlation": 0.1, "assume": "normal"}, {}, "only be 'gaussian'"),
        ({"groups": "g", "time_format": "%d"}, {}, "order_by"),
        ({"groups": "g", "anchor": "a"}, {}, "belongs to a ledger"),
        ({"groups": "g", "max_group_size": 0}, {}, "whole number above 0, got 0"),
        ({"groups": "g", "max_group_size": "2"}, {}, "whole number above 0, got '2'"),
        ({"groups": "g"}, {"public": True}, "about learning a model"),
        ({"groups": "g"}, {"kind": "chian"}, "did you mean chain?"),
        ({}, {"kind": "table", "public": True, "epsilon": 1.0}, "leave one of both out"),
        ({"groups": "g"}, {"kind": "groups", "columns": ("a",)}, "leave columns out"),
        ({"domain": [0, 1]}, {"kind": "table"}, "the domain of each"),
        ({"groups": "g", "correlation": 0.1}, {"kind": "chain"}, "not a chain"),
        ({"groups": "g", "correlation": 0.1}, {"kind": "series"}, "orders it"),
        ({"order_by": "t", "correlation": 0.1}, {"kind": "groups"}, "leave the order out"),
    ],
)
def test_what_contradicts_itself_is_refused_in_one_place(options, learning, words):
    with pytest.raises(pdp.PdpError, match=words):
        Job(questions=(parse_query("sum(x)"),), options=options, learning=learning)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: WIDE.pdp.linear([1, 2], model=PAIR, epsilon=1.0), "column: weight.*, got list"),
        (
            lambda: WIDE.pdp.sum(model=PAIR, adversaries="weakest", epsilon=1.0),
            "Adversaries.all.*, got str",
        ),
        (lambda: WIDE.pdp.sum(model=PAIR, epsilon=None), "give ledger="),
        (lambda: WIDE.pdp.sum(model=3, epsilon=1.0), "a model is needed, got int"),
        (lambda: WIDE.pdp.sum(model="gone.json", epsilon=1.0), "there is no file"),
        (lambda: LONG.pdp.sum(7, groups="home", bounds=(0, 1), epsilon=1.0), "no column 7"),
    ],
)
def test_values_of_another_kind_are_refused_in_words(call, words):
    with pytest.raises(pdp.PdpError, match=words):
        call()


def test_a_column_may_be_called_as_the_default_of_an_option():
    question = (parse_query("sum(x)"),)
    for name in ("refuse", "column", 0, False):
        assert Job(questions=question, options={"groups": "home", "by": name}).options["by"] == name
    silent = {"large": "refuse", "protect": "column", "independent": False}
    nothing = {"public": [], "where": {}, "by": ()}
    assert Job(questions=question, options={"groups": "home", **silent, **nothing}).options == {
        "groups": "home"
    }


@pytest.mark.parametrize("name", ["refuse", 0])
def test_a_breakdown_by_such_a_column_has_all_its_parts(name):
    frame = LONG.rename(columns={"x": name}).assign(y=[True, True, False])
    frame[name] = [1, 2, 2]
    release = frame.pdp.histogram(
        "y", by=name, domains={str(name): [1, 2]}, groups="home", epsilon=1.0
    )
    assert len(release.value) == 4


def test_bounds_and_domains_may_be_said_for_all_columns_or_by_column():
    both = LONG.assign(y=LONG["x"])
    asked = {"groups": "home", "epsilon": 0.5}
    scales = {
        str(bounds): both.pdp.sum("x", bounds=bounds, **asked).calibration.scale
        for bounds in ((0, 1), {"x": (0, 1)}, {None: (0, 1), "y": (0, 9)})
    }
    assert len(set(scales.values())) == 1
    with pytest.raises(pdp.QueryError, match="bounds"):
        both.pdp.sum("x", bounds={"y": (0, 1)}, **asked)
    counted = both.assign(x=[0, 1, 1]).pdp.histogram("x", domain={"x": [0, 1, 2]}, **asked)
    assert counted.value.index.tolist() == [0, 1, 2]


def test_models_and_ledgers_may_be_files(tmp_path):
    import json

    (tmp_path / "pair.json").write_text(json.dumps(PAIR.to_dict()))
    book = tmp_path / "budget.json"
    pdp.Ledger(PAIR, epsilon=1.0, path=book)
    WIDE.pdp.sum(model=tmp_path / "pair.json", ledger=book, epsilon=0.4)
    WIDE.pdp.sum(ledger=str(book), epsilon=0.4)  # the ledger's model
    with pytest.raises(pdp.BudgetExceededError):
        WIDE.pdp.sum(ledger=book, epsilon=0.4)
    assert len(pdp.Ledger.open(book).history) == 2
    with pytest.raises(pdp.LedgerError, match="a Ledger or its file, got dict"):
        WIDE.pdp.sum(ledger={}, epsilon=1.0)
