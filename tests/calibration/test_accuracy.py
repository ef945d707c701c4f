"""The accuracy of an answer covers its error, in its own unit, whatever is asked; its cost."""

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.calibration.release import add_noise, checked_layout, exact_answers
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.jobs.grammar import parse_query
from pdp_calibrate.jobs.job import Job
from pdp_calibrate.jobs.run import calibrate_task, model_of, task_of

RNG = np.random.default_rng(40)
ROWS = 900
FRAME = pd.DataFrame({
    "household": np.arange(ROWS) // 3,
    "score": RNG.random(ROWS),
    "gaps": np.where(RNG.random(ROWS) < 0.05, np.nan, 40 * RNG.random(ROWS)),
    "sick": RNG.random(ROWS) < 0.4,
    "city": RNG.choice(["Oslo", "Voss"], ROWS),
    "year": RNG.choice([2024, 2025, 2026], ROWS, p=[0.2, 0.3, 0.5]),
})  # fmt: skip
SCORE = {"bounds": (0, 1)}
GAPS = {"bounds": (0, 40), "missing": "zero"}
YEARS = {"by": "year", "public": ["year"]}
CITIES = {"by": "city", "domains": {"city": ["Oslo", "Voss"]}}
CASES = {
    "count": ("count(sick=true)", {}),
    "count where": ("count(sick=true)", {"where": {"city": "Oslo"}}),
    "count by": ("count(sick=true)", CITIES),
    "histogram": ("histogram(city)", {"domains": {"city": ["Oslo", "Voss"]}}),
    "histogram by": ("histogram(city)", {"by": "sick", "domains": {"city": ["Oslo", "Voss"]}}),
    "sum": ("sum(score)", SCORE),
    "sum, missing": ("sum(gaps)", GAPS),
    "sum where": ("sum(score)", SCORE | {"where": {"sick": True}}),
    "sum by": ("sum(score)", SCORE | CITIES),
    "mean": ("mean(score)", SCORE),
    "mean, correlated": ("mean(score)", SCORE | {"correlation": (0, 0.4)}),
    "mean by public": ("mean(score)", SCORE | YEARS),
    "mean where public": ("mean(score)", SCORE | {"where": {"year": 2024}, "public": ["year"]}),
    "mean, replaced": ("mean(gaps)", {"bounds": (0, 40), "missing": {"gaps": 20.0}}),
    "mean, missing": ("mean(gaps)", GAPS),
    "mean where": ("mean(score)", SCORE | {"where": {"sick": True}}),
    "mean by": ("mean(score)", SCORE | CITIES),
    "list": (
        ["sum(score)", "count(sick=true)", "mean(score)"],
        SCORE | {"where": {"city": "Oslo"}},
    ),
}
NOISES = {
    "laplace": {"epsilon": 1.0},
    "gaussian": {"epsilon": 1.0, "noise": "gaussian", "delta": 1e-6},
}
DRAWS = 40_000  # a share of .95 of them is off by less than .0066 but once in 1e9


def asked(case, noise):
    """Return the calibration of a case, and its exact noisy numbers without the noise."""
    texts, options = CASES[case]
    texts = [texts] if isinstance(texts, str) else texts
    said = {"groups": "household"} | options | NOISES[noise]
    job = Job(questions=tuple(map(parse_query, texts)), options=said)
    task = task_of(job, FRAME, model_of(job, FRAME))
    calibration = calibrate_task(job, task)
    exact = exact_answers(
        FRAME, calibration.queries, calibration.contributions, calibration.model,
        rows=calibration.rows, layout=checked_layout(**task.columns),
        adversaries=calibration.adversaries,
    )  # fmt: skip
    return calibration, [one.answer for one in exact]


@pytest.fixture
def simulated(monkeypatch):
    """Draw noise with numpy, from its definition and with a seed, in place of OpenDP."""
    rng = np.random.default_rng(41)

    def laplace(numbers, scale):
        return (np.array(numbers) + rng.laplace(0, scale, len(numbers))).tolist()

    def whole(numbers, scale):
        share = -np.expm1(-1 / scale)
        noise = rng.geometric(share, len(numbers)) - rng.geometric(share, len(numbers))
        return (np.array(numbers) + noise).tolist()

    def gaussian(numbers, scale):
        return (np.array(numbers) + rng.normal(0, scale, len(numbers))).tolist()

    place = "pdp_calibrate.core.noise.add_{}"
    monkeypatch.setattr(place.format("laplace_to_floats"), laplace)
    monkeypatch.setattr(place.format("laplace_to_integers"), whole)
    monkeypatch.setattr(place.format("gaussian_to_floats"), gaussian)


def errors(calibration, place, answer):
    """Return by how much each number of many releases of one answer is off."""
    part, query = calibration.contributions[place], calibration.queries[place]
    scale, noise = calibration.scales[place], calibration.noise
    noisy = np.array(add_noise([answer] * DRAWS, part, scale, noise), dtype=float)
    truth = np.array(answer, dtype=float)
    if isinstance(query, RowQuery):
        noisy = np.array([query.values(one) for one in noisy])
        truth = np.array(query.values(truth))
    return np.abs(noisy - truth)


def rows_counted(query, answer):
    """Return how many rows the mean that is secret in their number is really about."""
    is_ratio = isinstance(query, RowQuery) and query.is_ratio
    return {"count": min(map(float, answer[query.parts :]))} if is_ratio else {}


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("case", CASES)
def test_an_accuracy_covers_and_less_would_not(case, noise):
    calibration, exact = asked(case, noise)
    count = {}
    for query, answer in zip(calibration.queries, exact, strict=True):
        count |= rows_counted(query, answer)
    for place, (query, answer) in enumerate(zip(calibration.queries, exact, strict=True)):
        width = calibration.half_widths(**count)[place]
        off = errors(calibration, place, answer)
        worst = off[:, np.argmin(np.mean(off <= width, axis=0))]
        share = np.mean(worst <= width * (1 + 1e-9))
        assert share > 0.95 - 0.0066
        if calibration.contributions[place].is_integer:  # one step of the grid less
            assert np.mean(worst <= width - 1) < 0.95 + 0.0066
        elif rows_counted(query, answer):  # the worst mean has 0.95, others more
            assert share < 0.9966
        else:
            assert share < 0.95 + 0.01


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("case", [name for name in CASES if name != "list"])
@pytest.mark.parametrize("factor", [0.7, 3.0])
def test_a_wanted_accuracy_is_reached_and_a_thousandth_less_epsilon_misses_it(case, noise, factor):
    calibration, (answer,) = asked(case, noise)
    count = rows_counted(calibration.query, answer)
    wanted = factor * calibration.accuracy(**count)
    options = {name: one for name, one in NOISES[noise].items() if name != "epsilon"}
    about = {"rows": calibration.rows, **options}
    if count and wanted >= 1.9 * float(calibration.query.half):
        with pytest.raises(pdp.PdpError, match="any noise"):
            pdp.calibrate_to_accuracy(
                calibration.model, calibration.query, half_width=3 * wanted, **count, **about
            )
        return
    found = pdp.calibrate_to_accuracy(
        calibration.model, calibration.query, half_width=wanted, **count, **about
    )
    assert found.accuracy() <= wanted
    less = pdp.calibrate(
        calibration.model, calibration.query, epsilon=0.999 * found.epsilon, **about
    )
    assert less.accuracy(**count) > wanted


@pytest.mark.parametrize("case", ["mean, missing", "mean where", "mean by"])
def test_a_mean_over_a_secret_count_asks_for_it_whatever_the_rows_are(case):
    calibration, _ = asked(case, "laplace")
    with pytest.raises(pdp.QueryError, match="count=") as first:
        calibration.accuracy()
    with pytest.raises(pdp.QueryError, match="count=") as second:
        pdp.calibrate_to_accuracy(calibration.model, calibration.query, half_width=0.01)
    assert str(first.value) == str(second.value)
    text, options = CASES[case]
    empty = FRAME.assign(sick=False, gaps=1.0, city="Voss", score=0.5)
    other = empty.pdp.calibrate(text, groups="household", epsilon=1.0, **options)
    assert other.half_widths_in_words() == calibration.half_widths_in_words()
    stated = {"groups": "household", "count": 300, "epsilon": 1.0}
    told = FRAME.pdp.calibrate(text, **stated, **options)
    assert told.accuracy() == calibration.accuracy(count=300) > told.accuracy(count=900)
    assert pdp.Calibration.from_json(told.to_json()).accuracy() == told.accuracy()
    for bad in (0, 0.5, -3, float("nan"), True):
        with pytest.raises(pdp.PdpError, match="count"):
            calibration.accuracy(count=bad)


def test_a_count_beside_other_answers_is_refused():
    calibration, _ = asked("sum", "laplace")
    with pytest.raises(pdp.QueryError, match="does not depend on it, got 5"):
        calibration.accuracy(count=5)
    with pytest.raises(pdp.QueryError, match="does not depend on it, got 5"):
        pdp.calibrate_to_accuracy(calibration.model, calibration.query, half_width=9, count=5)


@pytest.mark.parametrize("noise", NOISES)
def test_an_accuracy_that_costs_more_than_20_is_refused_and_says_what_20_gives(noise):
    calibration, _ = asked("mean", noise)
    options = {name: one for name, one in NOISES[noise].items() if name != "epsilon"}
    arguments = (calibration.model, calibration.query)
    at_20 = pdp.calibrate(*arguments, **{"rows": calibration.rows, **options, "epsilon": 20.0})
    gives = at_20.half_widths_in_words()[0]
    about = {"rows": calibration.rows, **options}
    with pytest.raises(pdp.CalibrationError, match=f"gives {gives}.*allow_large_epsilon"):
        pdp.calibrate_to_accuracy(*arguments, half_width=0.9 * at_20.accuracy(), **about)
    allowed = pdp.calibrate_to_accuracy(
        *arguments, half_width=0.9 * at_20.accuracy(), allow_large_epsilon=True, **about
    )
    assert allowed.epsilon > 20
    below = pdp.calibrate_to_accuracy(*arguments, half_width=1.01 * at_20.accuracy(), **about)
    assert below.epsilon <= 20
