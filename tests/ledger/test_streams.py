"""Ledgers that grow step by step, about models without an end."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator

import pdp_calibrate as pdp
from pdp_calibrate.families.stream.course import LATE
from tests.oracles.streams import series_precision
from tests.support.cli_runs import fine, refused

CHAIN = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
SERIES = pdp.GaussianSeries(length=None, correlation=0.5, bounds=(0, 10))
FOR_EVER = pdp.dp_budget(CHAIN, epsilon=1.0)


def _charge_all(ledger, budget, steps):
    for step in steps:
        ledger.charge(budget, step=step)


def test_the_budget_for_ever_fits_for_ever_and_no_more():
    ledger = pdp.Ledger(CHAIN, epsilon=1.0)
    for step in range(120):
        spent = ledger.charge(FOR_EVER, step=step)
    assert 1.0 - 1e-9 < spent <= 1.0
    assert ledger.spent == spent
    with pytest.raises(pdp.BudgetExceededError):
        ledger.charge(FOR_EVER * 1.0001, step=60)
    with pytest.raises(pdp.BudgetExceededError):
        _charge_all(ledger, FOR_EVER * 1.01, range(120, 140))
    assert ledger.spent <= 1.0


def test_a_new_period_brings_no_new_budget_for_the_old_one():
    ledger = pdp.Ledger(CHAIN, epsilon=1.0)
    ledger.charge(0.7, step=1)
    about_first = [ledger.spent_about(1)]
    for step in (2, 3, 4):
        ledger.charge(0.1, step=step)
        about_first.append(ledger.spent_about(1))
    assert about_first == sorted(about_first)
    assert about_first[1] > about_first[0]
    assert ledger.spent >= about_first[-1]
    assert ledger.still_gains(0.01) == 10


def test_steps_are_numbers_or_dates_of_any_form(path):
    dated = pdp.Ledger(CHAIN, epsilon=2.0, path=path, every="D")
    dated.charge(0.1, step="2026-11-17")
    dated.charge(0.1, step=pd.Period("2026-11-17", freq="D"))
    dated.charge(0.1, step=pd.Timestamp("2026-11-17 15:00"))
    assert dated.spent == pytest.approx(0.3)
    assert {entry.step for entry in dated.history} == {"2026-11-17"}
    monthly = pdp.Ledger(CHAIN, epsilon=2.0, every="M")
    monthly.charge(0.1, step="2026-11-02")
    monthly.charge(0.1, step="2026-11")
    assert monthly.spent == pytest.approx(0.2)
    blocks = pdp.Ledger(CHAIN, epsilon=2.0, every="30d")
    blocks.charge(0.1, step="2026-11-04")
    blocks.charge(0.1, step="2026-11-29")
    assert blocks.spent == pytest.approx(0.2)
    for ledger, step in [
        (dated, 3),
        (dated, "17/11/2026"),
        (dated, "yesterday"),
        (dated, pd.Period("2026-11", freq="M")),
        (dated, "2026-11-17T00:00+02:00"),
        (pdp.Ledger(CHAIN), "2026-11-17"),
        (pdp.Ledger(CHAIN), True),
        (pdp.Ledger(CHAIN), 1.5),
        (pdp.Ledger(CHAIN), 2**70),
        (pdp.Ledger(CHAIN), None),
    ]:
        with pytest.raises(pdp.LedgerError):
            ledger.charge(0.1, step=step)
    with pytest.raises(pdp.LedgerError, match="every"):
        pdp.Ledger(CHAIN, every="fortnight")


def test_skipped_steps_count_nothing_and_late_ones_are_accepted_until_folded():
    ledger = pdp.Ledger(CHAIN, epsilon=1.0)
    ledger.charge(0.3, step=0)
    ledger.charge(0.3, step=2 * LATE)
    assert ledger.spent == pytest.approx(0.3)
    ledger.charge(0.2, step=2 * LATE - 1)
    with pytest.raises(pdp.LedgerError, match="is closed"):
        ledger.charge(0.1, step=0)
    with pytest.raises(pdp.LedgerError, match=f"from {LATE} on"):
        ledger.charge(0.1, step=LATE - 1)
    ledger.charge(0.1, step=LATE)


def test_a_promise_is_kept_free():
    promise = FOR_EVER
    with pytest.raises(pdp.BudgetExceededError, match="is the most that fits"):
        pdp.Ledger(CHAIN, epsilon=1.0, promise=promise * 1.001)
    ledger = pdp.Ledger(CHAIN, epsilon=1.0, promise=promise)
    assert ledger.spent == pytest.approx(1.0)
    with pytest.raises(pdp.BudgetExceededError):
        _charge_all(ledger, promise, [0] * 4)  # the first step has nothing before it
    for step in range(1, 60):
        ledger.charge(promise, step=step)
    assert ledger.spent <= 1.0


def test_releases_are_about_one_step_and_once_where_that_was_said(path, no_noise):
    calibration = pdp.calibrate(CHAIN, pdp.EachStep(pdp.Sum()), epsilon=1.0)
    ledger = pdp.Ledger(CHAIN, epsilon=1.0, path=path, every="W")
    people = pd.DataFrame({"sick": [0, 1, 1, 0, 1]})
    first = calibration.release(people, value="sick", ledger=ledger, step="2026-11-10")
    assert isinstance(first.value, int)
    assert first.moment.step == "2026-11-09/2026-11-15"
    again = pdp.Release.from_json(first.to_json())
    assert again == first
    Draft202012Validator(pdp.json_schema()).validate(first.to_dict())
    calibration.release(people.iloc[:3], value="sick", ledger=ledger, step="2026-11-17")
    once = ledger.release(
        pdp.Count(values={1}), people, value="sick", epsilon=0.1, step="2026-12-01"
    )
    assert once.calibration.scale == pytest.approx(10.0)
    no_noise()
    before = path.read_text()
    for step, error in [("2026-11-12", pdp.LedgerError), (None, pdp.QueryError)]:
        with pytest.raises(error):
            calibration.release(people, value="sick", ledger=ledger, step=step)
    with pytest.raises(pdp.QueryError):
        calibration.release(people, value="sick")
    with pytest.raises(pdp.QueryError):
        calibration.release(
            people, value="sick", order_by="sick2", ledger=ledger, step="2027-01-01"
        )
    with pytest.raises(pdp.LedgerError, match="another number of rows"):
        ledger.release(pdp.Sum(), people.iloc[:2], value="sick", epsilon=0.1, step="2026-12-02")
    with pytest.raises(pdp.BudgetExceededError):
        ledger.release(pdp.Sum(), people, value="sick", epsilon=0.95, step="2026-11-10")
    with pytest.raises(pdp.LedgerError, match="no new, independent draw"):
        ledger.new_draw("next")
    assert path.read_text() == before


def test_the_largest_release_that_fits_is_found():
    ledger = pdp.Ledger(CHAIN, epsilon=1.0)
    ledger.charge(0.5, step=0)
    release = ledger.release(pdp.Sum(), {0: 1}, epsilon=None, step=1)
    assert 0.999 < ledger.spent <= 1.0
    assert 0.5 < release.calibration.epsilon < 0.9
    assert ledger.would_spend(pdp.Sum(), epsilon=0.01, step=0) > 1.0
    with pytest.raises(pdp.BudgetExceededError):
        ledger.release(pdp.Sum(), {0: 1}, epsilon=None, step=1)


def test_gaussian_series_count_moves_and_refuse_outside_mechanisms():
    ledger = pdp.Ledger(SERIES, epsilon=1.0)
    for step in range(4):
        ledger.release(pdp.Sum(), {0: 3.5}, epsilon=0.25, step=step)
    assert ledger.spent == pytest.approx(0.25 * (1 + 0.5 + 0.5 + 0.25), rel=1e-6)
    with pytest.raises(pdp.UnsupportedQueryError):
        ledger.charge(0.1, step=9)
    calibration = pdp.calibrate(SERIES, pdp.EachStep(pdp.Mean(clamp=True)), epsilon=0.3, rows=2)
    frame = pd.DataFrame({"load": [3.0, 44.0]})
    other = pdp.Ledger(SERIES, epsilon=0.3)
    for step in range(30):
        calibration.release(frame, value="load", ledger=other, step=step)
    assert other.spent <= 0.3
    assert other.spent == pytest.approx(0.3, rel=1e-4)


def test_gaussian_noise_at_every_step_stays_within_the_filter(path):
    series = pdp.GaussianSeries(length=None, correlation=0.8, bounds=(0, 4), variance=1.0)
    each = pdp.EachStep(pdp.Sum())
    daily = pdp.calibrate(series, each, noise="gaussian", epsilon=0.999, delta=1e-6)
    options = {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}
    ledger = pdp.Ledger(series, path=path, **options)
    for step in range(80):
        daily.release({0: 2.0}, ledger=ledger, step=step)
    assert 0.99 < ledger.spent <= 1.0
    precisions = np.full(80, daily.scale**-2)
    dense = 4.0 * np.sqrt(series_precision(0.8, 1.0, precisions, 40))
    assert dense * (1 - 1e-12) <= ledger.history[-1].joint_mu <= ledger.mu
    assert ledger.history[-1].joint_mu == pytest.approx(dense, rel=1e-7)
    again = pdp.Ledger.open(path)
    assert again.spent == ledger.spent
    assert again.spent_about(40) == pytest.approx(again.spent)
    assert again.spent_about(400) < 0.01
    Draft202012Validator(pdp.json_schema()).validate(json.loads(path.read_text()))
    with pytest.raises(pdp.BudgetExceededError):
        again.release(pdp.Sum(), {0: 2.0}, epsilon=0.8, step=40)
    once = again.release(pdp.Sum(), {0: 2.0}, epsilon=None, step=500)
    assert once.calibration.mu == pytest.approx(ledger.mu, rel=1e-5)
    assert once.estimate().shape == (1, 3)
    for wrong in (
        lambda: again.charge(0.1, step=3),
        lambda: again.charge(mu=0.1, step=3),
        lambda: again.release(pdp.Sum(clamp=True), {0: 2.0}, epsilon=0.1, step=900),
        lambda: again.release(pdp.Sum(), {0: 2.0}, epsilon=0.1, step=900, noise="laplace"),
        lambda: pdp.Ledger(series, pure=0.1, **options),
        lambda: pdp.Ledger(series, promise=0.1, **options),
        lambda: pdp.Ledger(CHAIN, **options),
    ):
        with pytest.raises(pdp.PdpError):
            wrong()


def test_ledgers_of_models_with_an_end_take_no_steps():
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    for options in ({"every": "D"}, {"promise": 0.1}):
        with pytest.raises(pdp.LedgerError, match="without an end"):
            pdp.Ledger(pair, **options)
    ledger = pdp.Ledger(pair)
    for work in (
        lambda: ledger.charge(0.1, step=1),
        lambda: ledger.release(pdp.Sum(), {"x1": 1, "x2": 0}, epsilon=0.1, step=1),
        lambda: ledger.spent_about(1),
        ledger.still_gains,
    ):
        with pytest.raises(pdp.LedgerError, match="without an end"):
            work()
    with pytest.raises(pdp.QueryError):
        pdp.calibrate(pair, pdp.Sum()).release({"x1": 1, "x2": 0}, ledger=ledger, step=1)


def test_a_ledger_is_opened_with_all_it_knew(path):
    ledger = pdp.Ledger(CHAIN, epsilon=1.0, path=path, every="D", promise=0.05)
    for day in pd.period_range("2026-01-01", periods=3, freq="D"):
        ledger.charge(0.2, step=day)
    Draft202012Validator(pdp.json_schema()).validate(json.loads(path.read_text()))
    again = pdp.Ledger.open(path)
    assert (again.every, again.promise, again.spent) == ("D", 0.05, ledger.spent)
    assert again.spent_about("2026-01-02") == ledger.spent_about("2026-01-02")
    assert "2026-01-02" in pdp.explain(again)
    assert "Every future step may still spend" in pdp.explain(again)


def test_the_course_is_what_the_entries_add_up_to(path):
    """Without what was kept, the entries alone give the same."""
    ledger = pdp.Ledger(SERIES, epsilon=5.0, path=path)
    for step in (3, 1, 4, 1, 5):
        ledger.release([pdp.Sum(), pdp.Mean(clamp=False)], {0: 2.0}, epsilon=0.3, step=step)
    accounts = ledger._stream
    state = json.loads(path.read_text())
    entries_alone = {key: value for key, value in state.items() if key != "course"}
    assert accounts.total(entries_alone, "first") == accounts.total(state, "first")


def test_learning_the_model_comes_on_top():
    learned = CHAIN.learned_with(0.4)
    ledger = pdp.Ledger(learned, epsilon=1.0)
    assert ledger.spent == pytest.approx(0.4)
    ledger.charge(0.5, step=0)
    assert ledger.spent == pytest.approx(0.9)
    with pytest.raises(pdp.BudgetExceededError):
        ledger.charge(0.2, step=0)


def test_private_models_stay_private(path):
    law = [[0.815, 0.185], [0.2, 0.8]]
    secret = pdp.MarkovChain(transition=law, length=None, provenance="private")
    with pytest.warns(pdp.PrivacyLeakWarning):
        pdp.Ledger(secret, epsilon=1.0, path=path).charge(0.25, step=0)
    assert "0.815" not in path.read_text()
    one_step = pdp.MarkovChain(transition=law, length=1, provenance="private")
    with pytest.raises(pdp.LedgerError):
        pdp.Ledger.open(path, model=one_step)
    assert pdp.Ledger.open(path, model=secret).spent == pytest.approx(0.25)


def test_the_command_line_keeps_steps(tmp_path, path):
    (tmp_path / "model.json").write_text(json.dumps(CHAIN.to_dict()))
    calibration = pdp.calibrate(CHAIN, pdp.EachStep(pdp.Sum()), epsilon=0.5)
    (tmp_path / "calibration.json").write_text(calibration.to_json())
    pd.DataFrame({"sick": [0, 1, 1]}).to_csv(tmp_path / "people.csv", index=False)
    fine(f"ledger create {path} --model {tmp_path}/model.json -e 1 --every D --promise 0.05")
    fine(f"ledger charge {path} 0.1 --step 2026-11-16")
    release = (
        f"release {tmp_path}/people.csv --calibration {tmp_path}/calibration.json --value sick"
        f" --ledger {path} --step 2026-11-17"
    )
    assert fine(f"{release} --json").json["step"] == "2026-11-17"
    assert "once at each step" in refused(release)
    assert "step=" in refused(f"ledger charge {path} 0.1")
    refused(f"ledger charge {path} 0.9 --step 2026-11-17", code=3)
    shown = fine(f"ledger show {path} --json").json
    assert (shown["entries"], shown["every"], shown["promise"]) == (2, "D", 0.05)
    assert "2026-11-16" in fine(f"ledger history {path}").out


def _charge(path, steps):
    ledger = pdp.Ledger.open(path)
    for step in steps:
        try:
            ledger.charge(0.1, step=step)
        except pdp.BudgetExceededError:
            return


def test_processes_that_race_never_pass_the_budget_together(path):
    pdp.Ledger(CHAIN, epsilon=0.75, path=path)
    steps = [0, 1, 2, 0, 1, 2, 0, 1]
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_charge, args=(path, steps)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    ledger = pdp.Ledger.open(path)
    assert 0.5 < ledger.spent <= 0.75
    alone = pdp.Ledger(CHAIN, epsilon=5.0)
    for entry in ledger.history:
        alone.charge(0.1, step=entry.step)
    assert alone.spent == pytest.approx(ledger.spent, rel=1e-12)


_KILLED = """
import sys
import pdp_calibrate as pdp
ledger = pdp.Ledger.open(sys.argv[1])
for step in range(10_000):
    ledger.charge(0.001, step=step)
    print(step, flush=True)
"""


def test_a_process_that_is_killed_leaves_every_step_it_had_accounted_for(path):
    pdp.Ledger(CHAIN, epsilon=1.0, path=path)
    command = [sys.executable, "-c", _KILLED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603
        seen = [int(child.stdout.readline()) for _ in range(5)]
        os.kill(child.pid, signal.SIGKILL)
        seen += [int(line) for line in child.stdout]
    steps = {entry.step for entry in pdp.Ledger.open(path).history}
    assert set(seen) <= steps
    assert pdp.Ledger.open(path).charge(0.001, step=20_000) > 0
