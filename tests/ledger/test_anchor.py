"""A second place that must agree with a ledger, and other ways to make one budget into two."""

import errno
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.ledger.store import FileStore, Pages
from tests.support import ledger_workers
from tests.support.cli_runs import fine, refused, run
from tests.support.plans import plan_text

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
HERE = {"a": 1, "b": 0}


@pytest.fixture
def path(tmp_path):
    (tmp_path / "here").mkdir()
    return tmp_path / "here" / "ledger.json"


@pytest.fixture
def anchor(tmp_path):
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside" / "anchor.json"


def worker(*words):
    root = Path(__file__).parents[2]
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "tests.support.ledger_workers", *map(str, words)],
        capture_output=True, text=True, check=True, cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip
    return result.stdout.splitlines()


# Without an anchor ----------------------------------------------------------------------------


def test_a_ledger_notices_that_its_own_last_entry_was_rolled_back(path, no_noise):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    empty = path.read_bytes()
    ledger.release(pdp.Sum(), HERE, epsilon=1.0)
    path.write_bytes(empty)
    no_noise()
    for use in (
        lambda: ledger.release(pdp.Sum(), HERE, epsilon=1.0),
        lambda: ledger.charge(0.1),
        lambda: ledger.spent,
    ):
        with pytest.raises(pdp.LedgerError, match="lost entries"):
            use()


def test_the_entry_of_learning_cannot_be_rolled_back_unnoticed(path):
    learned = pdp.JointTable(
        probabilities=COUPLE.probabilities, domains=COUPLE.domains, provenance="dp"
    ).learned_with(0.5)
    ledger = pdp.Ledger(learned, epsilon=1.0, path=path)
    state = FileStore(path).read()
    FileStore(path).write(state | {"entries": []})
    with pytest.raises(pdp.LedgerError, match="lost entries"):
        ledger.charge(0.1)


def test_an_anchor_that_others_moved_on_before_the_writing_is_noticed(path, anchor):
    """The ledger has the bytes that were read: an old copy, of which the anchor knows better."""
    pdp.Ledger(COUPLE, epsilon=2.0, path=path, anchor=anchor)
    pages = Pages(FileStore(path, anchor=anchor))
    before, copy = pages.read(), path.read_bytes()
    pdp.Ledger.open(path, anchor=anchor).charge(0.5)
    path.write_bytes(copy)
    with pytest.raises(pdp.LedgerError, match="not in the state"):
        pages.replace(before, before | {"entries": [{"kind": "charge"}]})
    assert path.read_bytes() == copy


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_of_a_process_cannot_spend_its_ledger_in_memory():
    *forks, owner = worker("fork_memory", 2)
    assert len(forks) == 6
    assert all("in memory belongs to the process that began it" in line for line in forks)
    assert owner == "owner 1"


def test_hard_links_are_refused(path, no_noise):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    other = path.with_name("other.json")
    other.hardlink_to(path)
    no_noise()
    for use in (
        lambda: ledger.release(pdp.Sum(), HERE, epsilon=1.0),
        lambda: pdp.Ledger.open(path),
        lambda: pdp.Ledger.open(other),
        lambda: FileStore(path).write({}),
    ):
        with pytest.raises(pdp.LedgerError, match="second name, a hard link"):
            use()
    other.unlink()
    assert ledger.charge(0.1) == pdp.Ledger.open(path).spent


def test_planted_links_are_not_written_through(path, monkeypatch):
    victim = path.with_name("victim.txt")
    victim.write_text("precious")
    path.with_name("ledger.json.tmp").symlink_to(victim)  # where the new state was written once
    monkeypatch.setattr("secrets.token_hex", lambda _: "0123456789abcdef")
    foreseen = path.with_name("ledger.json.0123456789abcdef.tmp")
    foreseen.symlink_to(victim)
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path)  # what lay there is removed, not followed
    assert ledger.charge(0.1) == pdp.Ledger.open(path).spent
    assert path.is_file()
    assert not path.is_symlink()
    monkeypatch.setattr("pdp_calibrate.ledger.store.SafeFile._tidy", lambda _: None)
    foreseen.symlink_to(victim)  # in the moment between
    with pytest.raises(pdp.LedgerError, match=r"cannot be written.*Nothing was released"):
        ledger.charge(0.1)
    assert victim.read_text() == "precious"


def test_names_of_temporary_files_cannot_be_foreseen(path, monkeypatch):
    names = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda a, b: (names.append(a.name), replace(a, b))[1])
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    ledger.charge(0.1)
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"ledger\.json\.[0-9a-f]{16}\.tmp", name) for name in names)


def test_a_lock_that_is_a_link_is_refused(path):
    target = path.with_name("elsewhere")
    path.with_name("ledger.json.lock").symlink_to(target)
    with pytest.raises(pdp.LedgerError, match="symbolic link"):
        pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    assert not target.exists()


def test_what_killed_processes_leave_is_removed(path):
    left = path.with_name("ledger.json.00112233445566aa.tmp")
    left.write_text("half")
    others = [
        path.with_name(name) for name in ("ledger.json.old.tmp", "b.json.00112233445566aa.tmp")
    ]
    for other in others:
        other.write_text("another's")
    pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    assert not left.exists()
    assert all(other.exists() for other in others)


# With an anchor ---------------------------------------------------------------------------------


def test_a_ledger_and_its_anchor_go_on_together(path, anchor):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path, anchor=anchor)
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    again = pdp.Ledger.open(path, anchor=anchor)
    again.charge(0.1)
    again.new_draw("tuesday")
    assert ledger.history == again.history
    stored, held = json.loads(path.read_text()), json.loads(anchor.read_text())
    assert stored["anchor"] == str(anchor)
    assert held == {
        "schema": "pdp-calibrate/1", "type": "LedgerAnchor", "state": stored["checksum"],
        "next": None,
    }  # fmt: skip
    jsonschema.Draft202012Validator(pdp.json_schema()).validate(stored)
    assert pdp.load(path, anchor=anchor).spent == 0.0
    moved = anchor.with_name("moved.json")
    anchor.rename(moved)
    pdp.Ledger.open(path, anchor=moved).charge(0.1)
    assert json.loads(path.read_text())["anchor"] == str(moved)


def test_an_anchor_is_asked_for_by_name(path, anchor):
    pdp.Ledger(COUPLE, epsilon=2.0, path=path, anchor=anchor)
    for opened in (pdp.Ledger.open, pdp.load):
        with pytest.raises(pdp.LedgerError, match=re.escape(f"anchor at {anchor}")):
            opened(path)
    plain = path.with_name("plain.json")
    pdp.Ledger(COUPLE, epsilon=2.0, path=plain)
    with pytest.raises(pdp.LedgerError, match="has no anchor"):
        pdp.Ledger.open(plain, anchor=anchor)
    with pytest.raises(pdp.LedgerError, match="path="):
        pdp.Ledger(COUPLE, anchor=anchor.with_name("new.json"))
    for same in (path, plain):
        with pytest.raises(pdp.LedgerError, match="cannot be the ledger"):
            pdp.Ledger.open(same, anchor=same)


def test_old_copies_and_new_beginnings_are_refused(path, anchor, no_noise):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)
    empty, early = path.read_bytes(), anchor.read_bytes()
    ledger.release(pdp.Sum(), HERE, epsilon=1.0)
    latest, late = path.read_bytes(), anchor.read_bytes()
    no_noise()
    path.write_bytes(empty)
    with pytest.raises(pdp.LedgerError, match="not in the state that its anchor"):
        pdp.Ledger.open(path, anchor=anchor)
    path.unlink()
    with pytest.raises(pdp.LedgerError, match="belongs to a ledger that was begun already"):
        pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)
    assert not path.exists()
    pdp.Ledger(COUPLE, epsilon=1.0, path=path)  # begun anew without, or with another
    with pytest.raises(pdp.LedgerError, match="has no anchor"):
        pdp.Ledger.open(path, anchor=anchor)
    path.unlink()
    pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor.with_name("second.json"))
    with pytest.raises(pdp.LedgerError, match="not in the state"):
        pdp.Ledger.open(path, anchor=anchor)
    path.write_bytes(latest)
    anchor.write_bytes(early)
    with pytest.raises(pdp.LedgerError, match="not in the state"):
        pdp.Ledger.open(path, anchor=anchor)
    anchor.unlink()
    with pytest.raises(pdp.LedgerError, match=r"anchor .* cannot be read"):
        pdp.Ledger.open(path, anchor=anchor)
    anchor.write_bytes(late)
    assert pdp.Ledger.open(path, anchor=anchor).spent == pytest.approx(1.0)


def test_two_copies_used_in_turn_are_noticed(path, anchor):
    pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)
    copy = path.with_name("copy.json")
    shutil.copy(path, copy)
    first, second = (pdp.Ledger.open(place, anchor=anchor) for place in (path, copy))
    first.charge(0.1)
    with pytest.raises(pdp.LedgerError, match="not in the state"):
        second.charge(0.1)
    first.charge(0.1)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "null", "3", '{"schema": "pdp-calibrate/1", "type": "Ledger"}']
)
def test_a_damaged_anchor_is_refused(path, anchor, content):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)
    anchor.write_text(content)
    for use in (lambda: pdp.Ledger.open(path, anchor=anchor), lambda: ledger.charge(0.1)):
        with pytest.raises(pdp.LedgerError, match="anchor"):
            use()
    path.unlink()
    with pytest.raises(pdp.LedgerError, match="anchor"):
        pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)


def test_a_linked_anchor_is_followed_and_a_hard_link_refused(path, anchor):
    link = path.with_name("link.json")
    link.symlink_to(anchor)
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=link)
    ledger.charge(0.1)
    assert link.is_symlink()
    assert sorted(one.name for one in anchor.parent.iterdir()) == [
        "anchor.json",
        "anchor.json.lock",
    ]
    assert json.loads(path.read_text())["anchor"] == str(anchor)
    assert pdp.Ledger.open(path, anchor=anchor).spent == ledger.spent
    back = anchor.with_name("back.json")
    back.symlink_to(path)
    with pytest.raises(pdp.LedgerError, match="cannot be the ledger"):
        pdp.Ledger.open(path, anchor=back)
    anchor.with_name("second.json").hardlink_to(anchor)
    with pytest.raises(pdp.LedgerError, match=r"the anchor .* hard link"):
        ledger.charge(0.1)


def test_an_anchor_on_a_read_only_disk_releases_nothing(path, anchor, no_noise):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)
    ledger.charge(0.1)
    before = path.read_bytes()
    anchor.chmod(0o444)
    no_noise()
    with pytest.raises(pdp.LedgerError, match=r"anchor .*read-only.*Nothing was released"):
        ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    assert path.read_bytes() == before
    assert pdp.Ledger.open(path, anchor=anchor).spent == ledger.spent  # reading needs no writing
    anchor.chmod(0o644)
    ledger.charge(0.1)
    nowhere = anchor.with_name("nowhere") / "anchor.json"
    other = path.with_name("other.json")
    with pytest.raises(pdp.LedgerError, match=r"anchor .* cannot be written"):
        pdp.Ledger(COUPLE, epsilon=1.0, path=other, anchor=nowhere)
    assert not other.exists()


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_disk_that_is_full_at_any_of_the_writes_releases_nothing(
    path, anchor, failing, no_noise, monkeypatch
):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path, anchor=anchor)
    ledger.charge(0.1)
    no_noise()
    opened, writes = os.open, []

    def full(file, flags, *arguments, **options):
        if flags & os.O_EXCL:
            writes.append(file)
            if len(writes) == failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(file, flags, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        with pytest.raises(pdp.LedgerError, match=r"No space left.*Nothing was released"):
            ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    assert len(writes) == failing
    entries = 1 + (failing == 3)
    assert len(pdp.Ledger.open(path, anchor=anchor).history) == entries
    ledger.charge(0.1)
    assert len(pdp.Ledger.open(path, anchor=anchor).history) == entries + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_killed_between_the_writes_bricks_nothing_and_hides_nothing(tmp_path):
    lines = [line.split() for line in worker("be_killed_between", tmp_path)]
    assert len(lines) == 12
    for name, killed, answers in lines:
        what, write, moment = name.split("-")
        assert (killed, answers) == ("True", "0"), name
        place = tmp_path / name
        path, anchor = place / "ledger.json", place / "outside" / "anchor.json"
        written = (write, moment) in {("1", "after"), ("2", "before"), ("2", "after")}
        if what == "begin":
            assert path.exists() == written, name
            if not written:
                pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)
        ledger = pdp.Ledger.open(path, anchor=anchor)
        assert len(ledger.history) == (what == "release") * (1 + written), name
        copy = path.read_bytes()
        ledger.charge(0.05)
        assert json.loads(anchor.read_text())["next"] is None
        path.write_bytes(copy)
        with pytest.raises(pdp.LedgerError, match="not in the state"):
            pdp.Ledger.open(path, anchor=anchor)


def test_processes_share_a_ledger_with_an_anchor(path, anchor):
    ledger = pdp.Ledger(COUPLE, epsilon=50.0, path=path, anchor=anchor)
    context = multiprocessing.get_context("spawn")
    failures = context.Queue()
    workers = [
        context.Process(target=ledger_workers.share, args=(str(path), str(anchor), 12, failures))
        for _ in range(2)
    ]
    for one in workers:
        one.start()
    while any(one.is_alive() for one in workers):
        assert ledger.spent >= 0  # readers meet both files in the middle of being written
    for one in workers:
        one.join(timeout=60)
        assert one.exitcode == 0
    assert failures.empty()
    assert len(ledger.history) == 24


def test_a_reader_in_the_middle_of_a_write_looks_again(path, anchor, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path, anchor=anchor)
    other = pdp.Ledger.open(path, anchor=anchor)
    read, overtaken = Path.read_bytes, []

    def meanwhile(file):
        content = read(file)
        if not overtaken and file == path:
            overtaken.append(True)
            other.charge(0.1)  # after the ledger was read, before the anchor is
        return content

    monkeypatch.setattr(Path, "read_bytes", meanwhile)
    assert ledger.spent > 0
    assert overtaken


# On the command line and in plans -----------------------------------------------------------------


@pytest.fixture
def files(tmp_path, anchor):
    (tmp_path / "people.csv").write_text("a,b\n0,1\n1,1\n0,0\n")
    (tmp_path / "model.json").write_text(json.dumps(COUPLE.to_dict()))
    return tmp_path, tmp_path / "budget.json", anchor


def test_the_command_line_takes_an_anchor(files):
    folder, book, anchor = files
    fine(f"ledger create {book} --model {folder}/model.json -e 2 --anchor {anchor}")
    empty = book.read_bytes()
    ask = f'release {folder}/people.csv -q "sum(a,b)" -e 0.5 --ledger {book}'
    assert f"anchor at {anchor}" in refused(ask)
    fine(f"{ask} --anchor {anchor}")
    with_it = f"{book} --anchor {anchor}"
    for line in (
        f"ledger show {with_it}", f"ledger history {with_it}", f"ledger charge {with_it} 0.1",
        f"ledger draw {with_it} next", f"explain {with_it}",
        f"report {with_it} -o {folder}/report.html --force",
    ):  # fmt: skip
        fine(line)
        again = line.replace(f" --anchor {anchor}", "")
        assert "anchor at" in refused(f"{again} --force" if "report" in line else again)
    book.write_bytes(empty)
    assert "not in the state" in refused(f"{ask} --anchor {anchor}")
    book.unlink()
    assert "begun already" in refused(
        f"ledger create {book} --model {folder}/model.json -e 2 --anchor {anchor}"
    )
    assert "an anchor belongs to a ledger" in refused(
        f'release {folder}/people.csv -q "sum(a,b)" -e 1 --model {folder}/model.json'
        f" --anchor {anchor}"
    )


def test_a_plan_takes_an_anchor_and_says_when_nothing_is_remembered(files):
    folder, book, anchor = files
    plan = folder / "plan.toml"

    def write(**budget):
        plan.write_text(
            plan_text(
                {"query": "sum(a,b)", "epsilon": 0.5},
                data={"file": "people.csv"},
                model={"file": "model.json"},
                budget={"epsilon": 2.0, **budget},
            )
        )

    write(ledger="budget.json", anchor=str(anchor))
    assert "Nothing remembers" not in fine(f"plan {plan}").out
    once = book.read_bytes()
    assert fine(f"plan {plan} --json").json["budget"]["remembered"] is True
    book.write_bytes(once)
    assert "not in the state" in refused(f"plan {plan}")
    book.unlink()
    assert "begun already" in refused(f"plan {plan}")
    write(anchor=str(anchor))
    assert "budget.anchor" in refused(f"plan {plan}")
    write()
    for _ in range(2):
        assert "Nothing remembers this run" in run(f"plan {plan}").out
    told = fine(f"plan {plan} --json").json
    assert told["budget"]["remembered"] is False
    jsonschema.Draft202012Validator(pdp.json_schema()).validate(told)
