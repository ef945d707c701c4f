"""Ledgers on disk: what was released is in them, whatever happens to the process or the disk."""

import contextlib
import errno
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.ledger import accounts, store
from pdp_calibrate.ledger.store import FileStore
from tests.support import ledger_workers
from tests.support.marks import slow_after

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
HERE = {"a": 1, "b": 0}


def test_a_ledger_goes_on_where_it_stopped(path):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path, draw="monday")
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    ledger.release([pdp.Sum(), pdp.Custom(function=max)], HERE, epsilon=0.3)
    ledger.charge(0.1, note="a synthetic table")
    again = pdp.Ledger.open(path)
    assert again.history == ledger.history
    assert (again.spent, again.epsilon, again.draw) == (ledger.spent, 2.0, "monday")
    assert again.model == COUPLE
    assert again.adversaries == pdp.Adversaries.all()
    assert again.would_spend(dp_epsilon=0.2) == ledger.would_spend(dp_epsilon=0.2)
    again.release(pdp.Sum(), HERE, epsilon=0.2)
    assert ledger.spent == again.spent  # the first object sees what the second wrote
    ledger.new_draw("tuesday")
    assert again.draw == "monday"  # and does not mix up whose data it holds
    assert again.spent > 0
    assert pdp.Ledger.open(path).spent == 0.0
    assert pdp.Ledger.open(path, draw="monday").spent == again.spent
    with pytest.raises(pdp.LedgerError, match="no draw"):
        pdp.Ledger.open(path, draw="sunday")
    with pytest.raises(pdp.LedgerError, match="already"):
        pdp.Ledger(COUPLE, path=path)
    assert sorted(p.name for p in path.parent.iterdir()) == ["ledger.json", "ledger.json.lock"]


def test_the_file_holds_no_answer_and_says_what_it_is(path):
    ledger = pdp.Ledger(COUPLE, epsilon=50.0, path=path)
    released = [ledger.release(pdp.Sum(), HERE, epsilon=1e-4).value for _ in range(5)]
    released = [value for value in released if abs(value) > 20]  # told from other numbers
    assert released  # but for once in 10^14 runs
    stored = json.loads(path.read_text())
    assert stored["schema"] == "pdp-calibrate/1"
    assert stored["type"] == "Ledger"
    entry = stored["entries"][0]
    assert set(entry) == {
        "draw", "kind", "at", "spent", "method", "note", "queries", "scales", "rows", "epsilon",
        "layout",
    }  # fmt: skip
    assert entry["at"].endswith("+00:00")
    for value in released:
        assert value not in entry.values()


def test_the_entry_is_on_disk_before_noise_is_drawn(path, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    seen = []

    def draw(answers, _scale):
        seen.append(len(pdp.Ledger.open(path).history))
        return list(answers)

    monkeypatch.setattr("pdp_calibrate.core.noise.add_laplace_to_integers", draw)
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    assert seen == [1, 2]


def test_private_models_stay_out_of_the_file(path):
    secret = pdp.JointTable(
        probabilities=[[0.41234, 0.08766], [0.1, 0.4]], domains=[[0, 1]] * 2, provenance="private"
    )
    ledger = pdp.Ledger(secret, epsilon=2.0, path=path)
    with pytest.warns(pdp.PrivacyLeakWarning):
        ledger.release(pdp.Sum(), {"x1": 0, "x2": 1}, epsilon=0.5)
    text = path.read_text()
    assert "0.41234" not in text
    assert "probabilities" not in text
    assert secret.digest not in text
    with pytest.raises(pdp.PdpError, match="model="):
        pdp.Ledger.open(path)
    again = pdp.Ledger.open(path, model=secret)
    assert again.spent == ledger.spent
    with pytest.raises(pdp.LedgerError, match="other tuples"):
        pdp.Ledger.open(path, model=COUPLE)


def private_table(cells):
    shape = np.shape(cells)
    return pdp.JointTable(
        probabilities=cells, domains=[range(size) for size in shape], provenance="private"
    )


@pytest.mark.filterwarnings("ignore::pdp_calibrate.PrivacyLeakWarning")
def test_a_private_model_of_another_structure_is_refused(path):
    secret = private_table(np.full((2, 3), [0.21234, 0.2, 0.08766]))
    with pytest.warns(pdp.PrivacyLeakWarning):
        pdp.Ledger(secret, epsilon=2.0, path=path).charge(0.1)
    stored = json.loads(path.read_text())
    assert stored["structure"] == {
        "family": "JointTable", "domain_sizes": [[2, 1], [3, 1]], "real": [[False, 2]],
        "copies": [[1, 2]],
    }  # fmt: skip
    assert pdp.Ledger.open(path, model=secret).spent > 0
    names = ("x1", "x2")
    stated = pdp.JointTable(probabilities=secret.probabilities, domains=secret.domains)
    bounds = [(0, 1), (0, 2)]
    others = {
        "domains or group sizes": private_table(np.full((3, 2), 1 / 6)),
        "private Gaussian": pdp.Gaussian(
            mean=[0, 0], covariance=np.eye(2), bounds=bounds, names=names, provenance="private"
        ),
        "assumed JointTable": stated,
        "other tuples": private_table(np.full((2, 3, 2), 1 / 12)),
    }
    for message, model in others.items():
        with pytest.raises(pdp.LedgerError, match=message):
            pdp.Ledger.open(path, model=model)
    state = FileStore(path).read()
    del state["structure"]  # as earlier versions wrote it
    FileStore(path).write(state)
    assert pdp.Ledger.open(path, model=secret).spent > 0


def test_the_number_of_groups_of_a_private_model_counts(path):
    def homes(*counts):
        pairs = pdp.BinaryGroup(count_probabilities=[0.41234, 0.18766, 0.4], provenance="private")
        return pdp.Blocks(models=[pairs], counts=counts)

    pdp.Ledger(homes(30), epsilon=2.0, path=path)
    assert "0.41234" not in path.read_text()
    assert pdp.Ledger.open(path, model=homes(30)).spent == 0
    with pytest.raises(pdp.LedgerError, match="group sizes"):
        pdp.Ledger.open(path, model=homes(31))


def test_large_tables_are_told_by_their_digest(path):
    cells = np.random.default_rng(0).dirichlet(np.ones(2**14)).reshape((2,) * 14)
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 14)
    pdp.Ledger(table, epsilon=2.0, path=path).charge(0.01)
    assert pdp.Ledger.open(path, model=table).spent == pytest.approx(0.14)
    other = pdp.JointTable(probabilities=cells[::-1], domains=[[0, 1]] * 14)
    with pytest.raises(pdp.PdpError, match="not the one"):
        pdp.Ledger.open(path, model=other)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: "",
        lambda text: text.replace('"epsilon": 2.0', '"epsilon": 9.0'),
        lambda text: text.replace('"kind": "release"', '"kind": "charge"'),
        lambda text: text.replace("pdp-calibrate/1", "pdp-calibrate/2"),
        lambda _: "[]",
        lambda _: "\x00\xff",
        lambda text: json.dumps(json.loads(text) | {"entries": []}),
    ],
    ids=["torn", "empty", "richer", "changed", "schema", "list", "noise", "emptied"],
)
def test_a_damaged_file_is_refused(path, damage, no_noise):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    path.write_text(damage(path.read_text()), encoding="latin-1")
    no_noise()
    for use in (
        lambda: pdp.Ledger.open(path),
        lambda: ledger.spent,
        lambda: ledger.release(pdp.Sum(), HERE, epsilon=0.1),
        lambda: ledger.charge(0.1),
    ):
        with pytest.raises(pdp.LedgerError, match="damaged"):
            use()


def test_the_sum_of_a_file_is_taken_once_and_anew_whenever_the_file_changed(path, monkeypatch):
    """A release sums what it writes; what it reads twice before has the sum it wrote last."""
    summed, original = [], store._checksum

    def counted(state):
        summed.append(len(state["entries"]))
        return original(state)

    ledger = pdp.Ledger(pdp.Unknown(size=2, domain=[0, 1]), epsilon=9.0, path=path)
    monkeypatch.setattr(store, "_checksum", counted)
    ledger.charge(0.5)
    ledger.charge(0.5)
    assert summed == [1, 2]
    pdp.Ledger.open(path).charge(0.5)
    ledger.would_spend(dp_epsilon=0.5)
    assert summed == [1, 2, 2, 3, 3]
    path.write_text(path.read_text().replace("0.5", "0.4", 1))
    with pytest.raises(pdp.LedgerError, match="changed by hand"):
        ledger.charge(0.5)


def test_an_old_copy_put_back_is_noticed(path):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    copy = path.read_text()
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    assert len(ledger.history) == 2
    path.write_text(copy)
    with pytest.raises(pdp.LedgerError, match="lost entries"):
        ledger.release(pdp.Sum(), HERE, epsilon=0.1)
    path.unlink()
    with pytest.raises(pdp.LedgerError, match="cannot be read"):
        ledger.release(pdp.Sum(), HERE, epsilon=0.1)


@pytest.fixture
def began(path):
    """Pages of a ledger, a state that was read there, and one that goes on from it."""
    pdp.Ledger(COUPLE, epsilon=2.0, path=path).charge(0.5)
    pages = store.Pages(store.FileStore(path))
    before = pages.read()
    return pages, before, before | {"entries": [*before["entries"], {"kind": "charge"}]}


def test_what_was_read_is_not_read_again_before_it_is_replaced(began, monkeypatch):
    pages, before, after = began
    monkeypatch.setattr(store.json, "loads", lambda _: pytest.fail("it was read again"))
    assert pages.replace(before, after)
    monkeypatch.undo()
    assert pages.read()["entries"] == after["entries"]
    assert not pages.replace(before, after)


@pytest.mark.parametrize("seen", [True, False])
def test_what_others_wrote_is_not_replaced(began, path, seen):
    pages, before, after = began
    pdp.Ledger.open(path).charge(0.25)
    if seen:
        pages.read()
    content = path.read_bytes()
    assert not pages.replace(before, after)
    assert path.read_bytes() == content


def test_a_file_that_says_the_same_in_other_bytes_is_the_same(began, path):
    pages, before, after = began
    path.write_text(json.dumps(before, indent=4))
    assert pages.replace(before, after)
    path.write_text(path.read_text().replace("0.5", "0.4", 1))  # as long as it was
    with pytest.raises(pdp.LedgerError, match="changed by hand"):
        pages.replace(after, before)


@pytest.mark.parametrize("looked", [True, False])
def test_an_old_copy_put_back_before_the_writing_is_noticed(began, path, looked):
    """By the thread that was at work meanwhile, whether or not another one noticed it first."""
    pages, before, after = began
    copy = path.read_bytes()
    with pages.changing() as state:  # another thread
        state["entries"].append({"kind": "charge"})
    path.write_bytes(copy)
    if looked:
        with pytest.raises(pdp.LedgerError, match="lost entries"):
            pages.read()
    with pytest.raises(pdp.LedgerError, match="lost entries"):
        pages.replace(before, after)
    assert path.read_bytes() == copy


@pytest.mark.parametrize("call", ["fsync", "replace", "write"])
def test_a_full_disk_releases_nothing(path, call, no_noise, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    before = path.read_bytes()
    no_noise()

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened = os.open

    def full_for_writing(file, flags, *arguments, **options):
        return full() if flags & os.O_EXCL else opened(file, flags, *arguments, **options)

    with monkeypatch.context() as patched:
        if call == "fsync":
            patched.setattr(os, "fsync", full)
        elif call == "replace":
            patched.setattr(Path, "replace", full)
        else:
            patched.setattr(os, "open", full_for_writing)
        with pytest.raises(pdp.LedgerError, match=r"No space left.*Nothing was released"):
            ledger.release(pdp.Sum(), HERE, epsilon=0.5)
        with pytest.raises(pdp.LedgerError, match="No space left"):
            ledger.charge(0.5)
    assert path.read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir()) == ["ledger.json", "ledger.json.lock"]
    assert ledger.charge(0.1) == ledger.spent  # and goes on once there is space


def test_a_read_only_file_releases_nothing(path, no_noise):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    path.chmod(0o444)
    no_noise()
    with pytest.raises(pdp.LedgerError, match="read-only"):
        ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    assert pdp.Ledger.open(path).spent == ledger.spent
    with pytest.raises(pdp.LedgerError, match="cannot be written"):
        pdp.Ledger(COUPLE, path=path.parent / "nowhere" / "ledger.json")


@pytest.mark.parametrize("rounds", slow_after(1, [20, 100]))
def test_two_processes_racing_for_the_last_epsilon(tmp_path, rounds):
    for number in range(rounds):
        ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=tmp_path / f"{number}.json")
        ledger.spend(pdp.calibrate(COUPLE, pdp.Sum(), epsilon=0.6))
    context = multiprocessing.get_context("spawn")
    barrier, won = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=ledger_workers.race, args=(str(tmp_path), rounds, barrier, won))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    winners = sorted(won.get(timeout=120) for _ in range(rounds))
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    assert winners == list(range(rounds))  # one and only one each time
    assert won.empty()
    for number in range(rounds):
        ledger = pdp.Ledger.open(tmp_path / f"{number}.json")
        assert len(ledger.history) == 2
        assert ledger.spent <= 1.0


@pytest.mark.parametrize(("epsilon", "fits"), [(0.2, True), (0.5, False)])
def test_a_slow_search_keeps_no_other_process_waiting(path, epsilon, fits):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    alone = ledger.would_spend(dp_epsilon=epsilon)
    assert alone <= 1.0  # as the other process finds before this one spends
    context = multiprocessing.get_context("spawn")
    searching, go_on, met = context.Event(), context.Event(), context.Queue()
    slow = context.Process(
        target=ledger_workers.search_slowly, args=(str(path), epsilon, searching, go_on, met)
    )
    slow.start()
    assert searching.wait(60)
    first = ledger.charge(0.3)  # while the other one searches
    go_on.set()
    waited, result = met.get(timeout=90)
    slow.join(60)
    assert waited == [True]  # and not until it gave up waiting
    spent = [entry.spent for entry in ledger.history]
    if fits:
        assert spent == [first, result]
        assert result > max(first, alone)
        assert result == ledger.spent <= 1.0
    else:
        assert spent == [first]
        assert "above the budget" in result


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no file that is open")
@pytest.mark.parametrize("anchored", [False, True])
def test_deleting_the_lock_while_it_is_held_lets_nobody_in(path, anchored):
    anchor = path.with_name("anchor.json") if anchored else None
    pdp.Ledger(COUPLE, epsilon=1.0, path=path, anchor=anchor)
    context = multiprocessing.get_context("spawn")
    held, go_on, met = context.Event(), context.Event(), context.Queue()
    worker = ledger_workers.charge_while_held
    anchors = None if anchor is None else str(anchor)
    slow = context.Process(target=worker, args=(str(path), anchors, 0.5, held, go_on, met))
    slow.start()
    assert held.wait(60)
    path.with_name("ledger.json.lock").unlink()
    mine = []
    here = threading.Thread(
        target=lambda: mine.append(charged(pdp.Ledger.open(path, anchor=anchor), 0.5))
    )
    here.start()
    here.join(timeout=1)
    assert here.is_alive()  # it waits
    go_on.set()
    theirs = met.get(timeout=60)
    here.join(timeout=60)
    slow.join(timeout=60)
    assert 0.5 < theirs < 1
    assert "above the budget" in mine[0]
    assert len(pdp.Ledger.open(path, anchor=anchor).history) == 1


def charged(ledger, epsilon):
    try:
        return ledger.charge(epsilon)
    except pdp.PdpError as error:
        return str(error)


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no file that is open")
def test_who_waited_for_a_lock_that_was_deleted_takes_the_new_one(path, monkeypatch):
    """Between opening the file of the lock and holding it, it was replaced by another one."""
    pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    place, seen, real = path.with_name("ledger.json.lock"), [], store.lock

    def replaced(handle):
        if not seen:
            place.unlink()
            place.touch()
        seen.append(handle)
        real(handle)

    monkeypatch.setattr(store, "lock", replaced)
    with FileStore(path).locked():
        assert len(seen) == 3  # the lock that was deleted, the one that is there, and the ledger
        monkeypatch.undo()
        other = os.open(place, os.O_RDWR)
        import fcntl

        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)


def test_a_ledger_begun_by_another_meanwhile_is_not_replaced(path, monkeypatch):
    """As may happen where the lock was deleted: there is no ledger yet that could be locked."""
    real = store.sync

    def begun(handle):
        monkeypatch.setattr(store, "sync", real)
        path.write_text("another ledger")
        real(handle)

    monkeypatch.setattr(store, "sync", begun)
    with pytest.raises(pdp.LedgerError, match="already"):
        pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    assert path.read_text() == "another ledger"
    assert sorted(one.name for one in path.parent.iterdir()) == ["ledger.json", "ledger.json.lock"]


def test_nothing_to_write_down_writes_nothing(path):
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path=path)
    ledger.charge(0.1)
    before = path.read_bytes()
    ledger.spend_together([])
    assert path.read_bytes() == before


@pytest.mark.parametrize("others", [1, 2, 5])
def test_who_is_overtaken_again_and_again_ends_with_the_lock(path, others, monkeypatch):
    ledger, other = pdp.Ledger(COUPLE, epsilon=50.0, path=path), pdp.Ledger.open(path)
    real, searches, inside, held = accounts.spent, [], [], []
    lock = FileStore.locked

    @contextlib.contextmanager
    def noted(store):
        with lock(store):
            held.append(True)
            yield
            held.pop()

    def overtaken(*about, **options):
        if inside:
            return real(*about, **options)
        searches.append(bool(held))
        if len(searches) <= others and not held:
            inside.append(True)
            other.charge(0.1)
            inside.pop()
        return real(*about, **options)

    monkeypatch.setattr(FileStore, "locked", noted)
    monkeypatch.setattr(accounts, "spent", overtaken)
    result = ledger.charge(0.2)
    assert searches == {1: [False] * 2, 2: [False] * 3, 5: [False] * 3 + [True]}[others]
    history = pdp.Ledger.open(path).history
    assert [entry.dp_epsilon for entry in history] == [0.1] * min(others, 3) + [0.2]
    monkeypatch.undo()
    assert result == history[-1].spent == pdp.Ledger.open(path).spent
    again = pdp.Ledger(COUPLE, epsilon=50.0)
    for entry in history:
        assert again.charge(entry.dp_epsilon) == entry.spent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_nothing_is_released_that_is_not_in_the_ledger_when_killed(path):
    pdp.Ledger(COUPLE, epsilon=20.0, path=path)
    root = Path(__file__).parents[2]
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "tests.support.ledger_workers", "be_killed", str(path), "10"],
        capture_output=True, text=True, check=True, cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip
    counts = [tuple(map(int, line.split())) for line in result.stdout.splitlines()]
    assert len(counts) == 10
    given = 0
    for answers, entries in counts:
        given += answers
        assert given <= entries <= given + 1
        given = entries  # an entry without an answer is spent all the same
    assert pdp.Ledger.open(path).spent <= 20.0


@pytest.fixture
def many(path, monkeypatch):
    """A ledger of more answers than are kept one by one."""
    monkeypatch.setattr("pdp_calibrate.composition.joint.KEPT_SPENDING", 40)
    chain = pdp.MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=15)
    ledger = pdp.Ledger(chain, epsilon=5.0, path=path)
    ledger.charge(0.01)
    for first in range(6):
        ledger.spend(pdp.calibrate(chain, pdp.Mean(over=range(first, first + 8)), epsilon=0.1))
    return ledger


def test_many_entries_are_added_up_once(many, path, monkeypatch):
    stored = json.loads(path.read_text())
    assert stored["total"]["entries"] == len(stored["entries"]) == 7
    assert len(stored["total"]["budgets"]) == 15
    next_one = pdp.calibrate(many.model, pdp.Sum(over=[3]), epsilon=0.1)
    before = many.would_spend(next_one)
    again = pdp.Ledger.open(path)
    lowered = []
    original = pdp.Mean.contributions

    def counted(query, model, *, rows):
        lowered.append(query)
        return original(query, model, rows=rows)

    monkeypatch.setattr(pdp.Mean, "contributions", counted)
    assert again.would_spend(next_one) == before
    assert not lowered
    # The same from the entries alone, as a ledger without the sum would find it.
    del stored["total"]
    del stored["checksum"]
    FileStore(path).write(stored)
    assert pdp.Ledger.open(path).would_spend(next_one) == pytest.approx(before, rel=1e-12)
    assert len(lowered) == 6
    again = pdp.Ledger.open(path)
    again.new_draw("later")
    again.charge(0.5)
    assert pdp.Ledger.open(path, draw="first").would_spend(next_one) == pytest.approx(before)


@pytest.mark.parametrize(
    "change",
    [{"budgets": [0.0] * 14}, {"budgets": [-1.0] * 15}, {"budgets": "x"}, {"entries": 99}],
    ids=["short", "negative", "text", "ahead"],
)
def test_a_sum_that_does_not_fit_is_refused(many, path, change):
    state = FileStore(path).read()
    state["total"] |= change
    FileStore(path).write(state)
    with pytest.raises(pdp.LedgerError, match="adds up"):
        pdp.Ledger.open(path).would_spend(dp_epsilon=0.1)
    with pytest.raises(pdp.LedgerError, match="adds up"):
        pdp.Ledger.open(path).charge(0.1)
    path.write_text(path.read_text().replace('"rounding"', '"wounding"'))
    with pytest.raises(pdp.LedgerError, match="damaged"):
        many.charge(0.1)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_name_that_no_file_can_have_is_refused_in_words(tmp_path, name):
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    with pytest.raises(pdp.LedgerError):
        pdp.Ledger(pair, epsilon=1.0, path=tmp_path / name)
    with pytest.raises(pdp.LedgerError):
        pdp.Ledger(pair, epsilon=1.0, path=tmp_path / "l.json", anchor=tmp_path / name)
    with pytest.raises(pdp.LedgerError):
        pdp.Ledger.open(tmp_path / name)
