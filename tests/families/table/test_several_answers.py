"""Histograms and joint releases: exact against brute force, sound where adding is not."""

import json

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from tests.oracles.vectors import worst_vector_leakage
from tests.support.drawn_noise import assert_discrete_laplace
from tests.support.marks import slow_after
from tests.support.random_models import adversary_kinds, random_table


def random_categories(rng, *, most_tuples=4, most_values=4):
    tuples = rng.integers(2, most_tuples, endpoint=True)
    sizes = rng.integers(2, most_values, endpoint=True, size=tuples)
    while np.prod(sizes) > 64:
        sizes = sizes[:-1]
    cells = rng.dirichlet(np.full(int(np.prod(sizes)), 0.7)).reshape(sizes)
    cells = np.where(rng.random(sizes) < rng.choice([0.0, 0.25]), 0.0, cells)
    cells[cells < 1e-9] = 0
    cells[(0,) * len(sizes)] += 0.1
    domains = ["abcd"[:size] for size in sizes]
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)


@pytest.mark.parametrize("seed", slow_after(9, range(60)))
def test_histograms_equal_brute_force_over_the_whole_grid(seed):
    rng = np.random.default_rng(seed)
    sizes = {"most_tuples": 3 if seed % 3 else 4, "most_values": 3 if seed % 2 else 4}
    table = random_categories(rng, **sizes)
    scale = float(np.exp(rng.uniform(-1.5, 2)))
    query = pdp.Histogram()
    categories = query.of(table)
    for adversaries, admits in adversary_kinds(rng, table.names):
        truth = worst_vector_leakage(
            table.probabilities, table.domains,
            lambda x: tuple(float(x.count(c)) for c in categories),
            [scale] * len(categories), admits,
        )  # fmt: skip
        leak = pdp.leakage(table, query, scale=scale, adversaries=adversaries)
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-12), adversaries
        assert leak.exact


@pytest.mark.parametrize("seed", slow_after(9, range(40)))
def test_joint_answers_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, tuples=(2, 3), values=(2, 3))
    n = len(table.names)
    weights = rng.normal(size=n).round(2)
    queries = [pdp.Sum(), pdp.Linear(weights=weights.tolist())]

    def function(x):
        return float(sum(x)), float(sum(w * v for w, v in zip(weights, x, strict=True)))

    if seed % 4 == 0:
        queries[1] = pdp.Custom(function=max)

        def function(x):
            return float(sum(x)), float(max(x))

    scales = np.exp(rng.uniform(-1, 1.5, size=2)).tolist()
    for adversaries, admits in adversary_kinds(rng, table.names):
        truth = worst_vector_leakage(table.probabilities, table.domains, function, scales, admits)
        leak = pdp.leakage(table, queries, scale=scales, adversaries=adversaries)
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-12), adversaries
        assert leak.exact
        if leak.witness is not None:
            witness = leak.witness
            attained = log_ratio(
                table,
                function,
                scales,
                witness.target,
                witness.known,
                witness.secrets,
                witness.output,
            )
            assert attained == pytest.approx(truth, rel=1e-7, abs=1e-9)


def log_ratio(table, function, scales, target, known, secrets, output):
    """Log ratio of the densities at one output, from the table alone."""
    log_densities = []
    for secret in secrets:
        fixed = known | {target: secret}
        weights, terms = [], []
        for cell, mass in np.ndenumerate(table.probabilities):
            x = tuple(domain[k] for domain, k in zip(table.domains, cell, strict=True))
            everyone = len(fixed) == len(x)
            if all(x[table.names.index(n)] == v for n, v in fixed.items()) and (mass or everyone):
                weights.append(mass or 1.0)
                terms.append(
                    sum(abs(a - b) / s for a, b, s in zip(output, function(x), scales, strict=True))
                )
        weights = np.array(weights) / np.sum(weights)
        log_densities.append(np.log(weights @ np.exp(-np.array(terms))))
    return log_densities[0] - log_densities[1]


def test_adding_single_leakages_is_unsound_and_the_joint_scale_is_not():
    """Two releases of one sum: somewhere the joint leakage exceeds twice the single one."""
    rng = np.random.default_rng(7)
    worst_ratio = 0.0
    for _ in range(200):
        cells = rng.dirichlet(np.full(8, 0.3)).reshape(2, 2, 2)
        cells = np.maximum(cells, 1e-6)
        table = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * 3)
        single = pdp.leakage(table, pdp.Sum(), scale=2.0).value
        joint = pdp.leakage(table, [pdp.Sum(), pdp.Sum()], scale=[2.0, 2.0]).value
        if joint / single > worst_ratio:
            worst_ratio, worst_table = joint / single, table
    assert worst_ratio > 2.05
    alone = pdp.calibrate(worst_table, pdp.Sum(), epsilon=0.5)
    added = pdp.leakage(worst_table, [pdp.Sum(), pdp.Sum()], scale=[alone.scale] * 2)
    assert added.lower > 1.0
    together = pdp.calibrate(worst_table, [pdp.Sum(), pdp.Sum()], epsilon=1.0)
    truth = worst_vector_leakage(
        worst_table.probabilities, worst_table.domains,
        lambda x: (float(sum(x)),) * 2, together.scales, lambda *_: True,
    )  # fmt: skip
    assert truth <= 1.0 + 1e-12


@pytest.mark.parametrize("seed", range(15))
def test_joint_scales_are_sound_tight_and_shared_out(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, tuples=(2, 3), values=(2, 2))
    queries = [pdp.Sum(), pdp.Sum(over=[table.names[0]])]
    cal = pdp.calibrate(table, queries, epsilon=0.9, shares=[3, 1])
    local = [pdp.sensitivity(table, query).overall for query in queries]
    assert cal.scales[1] / cal.scales[0] == pytest.approx(3 * local[1] / local[0], rel=1e-12)
    assert cal.leakage.value <= 0.9

    def truth(factor):
        return worst_vector_leakage(
            table.probabilities, table.domains, lambda x: (float(sum(x)), float(x[0])),
            [factor * scale for scale in cal.scales], lambda *_: True,
        )  # fmt: skip

    assert truth(1.0) <= 0.9 * (1 + 1e-12)
    assert truth(1 - 1e-6) > 0.9


def test_a_joint_calibration_releases_and_describes_itself():
    table = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
    )
    cal = pdp.calibrate(table, [pdp.Sum(), pdp.Mean(), pdp.Histogram()], epsilon=2.0, rows=3)
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 0]})
    release = cal.release(frame)
    total, mean, histogram = release.values
    assert isinstance(total, int)
    assert isinstance(mean, float)
    assert list(histogram.index) == [0, 1]
    for (low, high), width in zip(release.interval(), cal.accuracy(), strict=True):
        assert np.all(np.isclose(np.asarray(high - low, dtype=float), 2 * width))
    described = json.loads(cal.to_json())
    assert described["scale"] == list(cal.scales)
    assert described["type"] == "Calibration"
    again = pdp.Calibration.from_json(cal.to_json())
    assert again.scales == cal.scales
    described["scale"][0] *= 0.9
    with pytest.raises(pdp.CalibrationError, match="leaks up to"):
        pdp.Calibration.from_json(json.dumps(described))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: pdp.calibrate(t, []), "list of queries"),
        (lambda t: pdp.calibrate(t, [pdp.Sum(), "sum"]), "list of queries"),
        (lambda t: pdp.calibrate(t, [pdp.Sum()], shares=[1, 2]), "shares"),
        (lambda t: pdp.calibrate(t, [pdp.Sum()] * 2, shares=[1, 0]), "shares"),
        (lambda t: pdp.calibrate(t, pdp.Sum(), shares=[1]), "single one"),
        (lambda t: pdp.leakage(t, [pdp.Sum()] * 2, scale=[1.0]), "one number per query"),
        (lambda t: pdp.leakage(t, [pdp.Sum()] * 2, scale=[1.0, -1.0]), "positive"),
        (lambda t: pdp.leakage(t, pdp.Sum(), scale=[1.0]), "must be a number"),
        (lambda t: pdp.calibrate(t, [pdp.Sum(), pdp.Custom(function=lambda _: 1)]), "same answer"),
        (lambda t: pdp.calibrate(t, [pdp.Sum(clamp=True), pdp.Sum()]), "clamp"),
        (lambda t: pdp.leakage(t, pdp.Histogram(categories=[5])), "no tuple's domain"),
        (lambda _: pdp.Histogram(categories=[]), "at least one"),
        (lambda _: pdp.Histogram(categories=[1, 1]), "twice"),
        (lambda _: pdp.Histogram(categories="ab"), "collection of values"),
    ],
)
def test_nonsense_is_refused(make, message):
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    with pytest.raises(pdp.PdpError, match=message):
        make(table)


CITIES = pdp.JointTable(
    probabilities=[[0.3, 0.1, 0.05], [0.05, 0.2, 0.1], [0.05, 0.05, 0.1]],
    domains=[["oslo", "rome", "lima"]] * 2, names=["home", "work"],
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_a_histogram_is_released_by_category_with_discrete_noise():
    cal = pdp.calibrate(CITIES, pdp.Histogram(), epsilon=1.0)
    frame = pd.DataFrame({"home": ["oslo"] * 4000, "work": ["rome"] * 4000})
    rows = cal.release_rows(frame).value
    assert list(rows.columns) == ["oslo", "rome", "lima"]
    for column, true in (("oslo", 1), ("rome", 1), ("lima", 0)):
        assert_discrete_laplace(rows[column] - true, cal.scale)
    release = cal.release(frame)
    assert release.value.index.tolist() == ["oslo", "rome", "lima"]
    low, high = release.interval()
    assert ((high - low) == 2 * int(cal.accuracy())).all()


def test_some_categories_only():
    cal = pdp.calibrate(CITIES, pdp.Histogram(categories=["rome", "lima"], over=["home"]))
    assert cal.release({"home": "oslo"}).value.index.tolist() == ["rome", "lima"]
    assert pdp.Calibration.from_json(cal.to_json()).query == cal.query


@pytest.mark.parametrize("seed", range(30))
def test_cleaned_counts_could_be_true_and_are_the_nearest(seed):
    rng = np.random.default_rng(seed)
    cal = pdp.calibrate(CITIES, pdp.Histogram(), epsilon=0.3)
    noisy = pd.Series(rng.integers(-8, 20, size=3), index=list("abc"))
    release = pdp.Release(value=noisy, calibration=cal)
    assert (release.cleaned() == noisy.clip(lower=0)).all()
    total = int(rng.integers(0, 30))
    cleaned = release.cleaned(total=total)
    assert cleaned.sum() == total
    assert (cleaned >= 0).all()
    best = min(
        (a - noisy["a"]) ** 2 + (b - noisy["b"]) ** 2 + (total - a - b - noisy["c"]) ** 2
        for a in range(total + 1)
        for b in range(total + 1 - a)
    )
    assert ((cleaned - noisy) ** 2).sum() <= best + 2
    with pytest.raises(pdp.QueryError, match="total"):
        release.cleaned(total=-1)
    with pytest.raises(pdp.QueryError, match="histogram"):
        pdp.Release(value=3, calibration=cal).cleaned()
