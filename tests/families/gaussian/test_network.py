"""Gaussian networks: the sparse elimination, and what it says of every adversary."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from jsonschema import Draft202012Validator
from scipy.sparse import csc_array, diags_array, eye_array

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from pdp_calibrate.families.gaussian import network_search, sparse_inverse
from pdp_calibrate.families.gaussian.network import GaussianNetwork
from pdp_calibrate.families.gaussian.sparse_inverse import Scaled
from tests.oracles import gaussian as oracle
from tests.support.marks import bounds_checked, slow_after
from tests.support.networks import grid_precision


def random_precision(rng, size, kind, *, density=0.6):
    """A precision with couplings that are alike, alike after flips of sign, or of any sign."""
    links = np.triu(rng.exponential(size=(size, size)) * (rng.random((size, size)) < density), 1)
    flips = rng.choice([-1.0, 1.0], size=size) if kind == "flipped" else np.ones(size)
    signs = rng.choice([-1.0, 1.0], size=(size, size)) if kind == "mixed" else -np.ones((size,) * 2)
    links *= signs * np.outer(flips, flips)
    beside = links + links.T
    precision = beside + np.diag(np.abs(beside).sum(axis=1) + rng.exponential(size=size) + 1e-3)
    return precision, flips


def random_case(seed, kind, *, answers=1, largest=6):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, largest + 1))
    precision, flips = random_precision(rng, size, kind)
    weights = rng.normal(size=(answers, size)) * (rng.random(size) < 0.8)
    if kind != "mixed":
        weights = np.abs(weights) * flips
    weights[:, 0] = flips[0]
    units = 2.0 ** rng.integers(-20, 20, size=size)
    widths = rng.uniform(0.5, 2.0, size=size) / units
    precision *= np.outer(units, units)
    weights = weights * units
    model = GaussianNetwork(precision=precision, bounds=[(0, width) for width in widths])
    queries = [pdp.Linear(weights=row) for row in weights]
    truth = oracle.leakages_by_precision(precision, weights, model.widths)
    return model, queries, truth


def named(model, witness):
    return (
        model.names.index(witness.target),
        tuple(sorted(model.names.index(name) for name in witness.known)),
    )


# The elimination, in fractions


def exactly(matrix):
    return [[Fraction(entry) for entry in row] for row in matrix.tolist()]


def product(left, right):
    columns = list(zip(*right, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in left
    ]


def inverted(matrix):
    """The inverse of a matrix of fractions, by elimination."""
    size = len(matrix)
    rows = [row[:] + [Fraction(int(i == j)) for j in range(size)] for i, row in enumerate(matrix)]
    for k in range(size):
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(size):
            if i != k:
                factor = rows[i][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[size:] for row in rows]


@pytest.mark.parametrize("seed", bounds_checked(range(60), 6, quick=12))
def test_factors_and_inverses_lie_on_the_side_they_are_rounded_to(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    precision, _ = random_precision(rng, size, "mixed")
    scaled = Scaled.of(csc_array(precision))
    comparison = exactly(scaled.comparison.toarray())
    truth = inverted(comparison)
    vector = rng.random(size) * (rng.random(size) < 0.7)
    image = [
        sum(a * Fraction(v) for a, v in zip(row, vector.tolist(), strict=True)) for row in truth
    ]
    for towards in (1, -1):
        factor = scaled.elimination.factor(scaled.comparison, towards)
        lower = np.eye(size)
        for column in range(size):
            inside = slice(factor.below[column], factor.below[column + 1])
            lower[factor.rows[inside], column] = factor.entries[inside]
        pivots = np.diag(factor.pivots)
        rebuilt = product(product(exactly(lower), exactly(pivots)), exactly(lower.T))
        for i, k in enumerate(factor.order):
            for j, m in enumerate(factor.order):
                assert towards * (rebuilt[i][j] - comparison[k][m]) >= 0
    inverse = scaled.inverse
    high, low, diagonal = inverse.at_most(vector), inverse.at_least(vector), inverse.least_diagonal
    for k in range(size):
        assert Fraction(low[k]) <= image[k] <= Fraction(high[k])
        assert Fraction(diagonal[k]) <= truth[k][k]
        assert diagonal[k] == pytest.approx(float(truth[k][k]), rel=1e-12)
        assert high[k] == pytest.approx(low[k], rel=1e-12, abs=1e-200)


def test_definiteness_is_certified_and_refused():
    far = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, 0.9], [0.9, 0.9, 1.0]])  # Ω̃ is not definite
    scaled = Scaled.of(csc_array(far))
    assert scaled.inverse is None
    assert scaled.is_definite
    GaussianNetwork(precision=far, bounds=(0, 1))
    for entries in (-0.6, -0.5):  # the second is singular
        bad = np.full((3, 3), entries) + np.eye(3) * (1 - entries)
        with pytest.raises(pdp.ModelError, match="positive definite"):
            GaussianNetwork(precision=bad, bounds=(0, 1))


# Every adversary, against regressions one by one


@pytest.mark.parametrize("seed", slow_after(40, range(300)))
@pytest.mark.parametrize("kind", ["alike", "flipped"])
def test_exact_where_signs_fit(seed, kind):
    model, queries, truth = random_case(seed, kind, answers=1 + seed % 3)
    leak = pdp.leakage(model, queries, scale=1.0)
    worst = max(truth.values())
    assert leak.exact
    assert leak.value >= worst * (1 - 1e-13)
    assert leak.value == pytest.approx(worst, rel=1e-10)
    assert leak.lower <= truth[named(model, leak.witness)] * (1 + 1e-13)
    for (target, _), found in truth.items():
        assert found <= truth[target, ()] * (1 + 1e-9)


@pytest.mark.parametrize("seed", slow_after(40, range(300)))
def test_never_below_the_truth_with_other_signs(seed, monkeypatch):
    model, queries, truth = random_case(seed, "mixed", answers=1 + seed % 2)
    worst = max(truth.values())
    exact = pdp.leakage(model, queries, scale=1.0)
    assert exact.exact  # few tuples are searched
    assert exact.value == pytest.approx(worst, rel=1e-9)
    monkeypatch.setattr(network_search, "SEARCHED_TUPLES", 0)
    bound = pdp.leakage(model, queries, scale=1.0)
    assert bound.value >= worst * (1 - 1e-13)
    assert bound.lower <= truth[named(model, bound.witness)] * (1 + 1e-13)


@pytest.mark.parametrize("seed", slow_after(6, range(40)))
@pytest.mark.parametrize("kind", ["alike", "mixed"])
@pytest.mark.parametrize("searched", [0, 60])
def test_every_named_adversary(seed, kind, searched, monkeypatch):
    monkeypatch.setattr(network_search, "SEARCHED_TUPLES", searched)
    model, queries, truth = random_case(seed, kind, answers=1 + seed % 2, largest=4)
    for (target, known), found in truth.items():
        one = pdp.Adversaries.exactly(model.names[target], known=[model.names[k] for k in known])
        leak = pdp.leakage(model, queries, scale=1.0, adversaries=one)
        assert leak.lower * (1 - 1e-13) <= found <= leak.value * (1 + 1e-13)
        assert leak.value - leak.lower <= 1e-9 * max(truth.values())


@pytest.mark.parametrize("seed", range(12))
def test_sizes_of_what_is_known(seed):
    model, queries, truth = random_case(seed, "mixed" if seed % 2 else "alike", largest=5)
    for least, most in ((0, 0), (0, 1), (1, None), (2, 3)):
        if least > len(model.names) - 1:
            continue
        some = pdp.Adversaries.knowing(at_least=least, at_most=most)
        admitted = {
            pair: leak
            for pair, leak in truth.items()
            if least <= len(pair[1]) <= (len(model.names) if most is None else most)
        }
        leak = pdp.leakage(model, queries, scale=1.0, adversaries=some)
        assert leak.exact
        assert leak.value == pytest.approx(max(admitted.values()), rel=1e-9)
    strongest = pdp.leakage(model, queries, scale=1.0, adversaries=pdp.Adversaries.strongest())
    plain = max(leak for (_, known), leak in truth.items() if len(known) == len(model.names) - 1)
    assert strongest.exact
    assert strongest.value == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("seed", slow_after(12, range(80)))
@pytest.mark.parametrize("kind", ["alike", "mixed"])
def test_clamped_answers_are_bounded_by_couplings_and_ranges(seed, kind, monkeypatch):
    monkeypatch.setattr(network_search, "SEARCHED_TUPLES", 0)
    model, (query,), truth = random_case(seed, kind, largest=4)
    leak = pdp.leakage(model, pdp.Linear(weights=query.weights, clamp=True), scale=1.0)
    weights = np.array(query.weights)
    covariance = np.linalg.inv(model.precision.toarray())
    bounds = {
        pair: oracle.clamped_bound(covariance, weights, model.widths, *pair) for pair in truth
    }
    worst = max(bounds.values())
    assert leak.value >= worst * (1 - 1e-10)
    if kind == "alike":
        assert leak.value == pytest.approx(worst, rel=1e-9)
    assert leak.value <= float(np.abs(weights) @ model.widths) * (1 + 1e-12)
    assert leak.lower == pytest.approx(float((np.abs(weights) * model.widths).max()), rel=1e-12)


def strong_mixture(size):
    """Positive definite, its comparison matrix not; signs that fit no sum."""
    return np.full((size, size), 0.9) + 0.1 * np.eye(size)


def test_where_nothing_bounds_it_is_refused_or_a_group():
    blocks = np.kron(np.eye(25), strong_mixture(3))  # 75 tuples: too many to search
    model = GaussianNetwork(precision=blocks, bounds=(0, 2))
    with pytest.raises(pdp.UnsupportedQueryError, match="clamp"):
        pdp.leakage(model, pdp.Sum())
    clamped = pdp.leakage(model, pdp.Sum(clamp=True))
    assert clamped.value == pytest.approx(6.0)  # the three of one component
    assert clamped.lower == pytest.approx(2.0)
    strongest = pdp.leakage(model, pdp.Sum(), adversaries=pdp.Adversaries.strongest())
    assert strongest.value == pytest.approx(2.0)
    few = GaussianNetwork(precision=strong_mixture(3), bounds=(0, 2))
    truth = oracle.leakages_by_precision(strong_mixture(3), np.ones((1, 3)), few.widths)
    leak = pdp.leakage(few, pdp.Sum())
    assert leak.exact
    assert leak.value == pytest.approx(max(truth.values()), rel=1e-9)
    one = pdp.Adversaries.exactly("x1", known=["x2"])
    assert pdp.leakage(few, pdp.Sum(), adversaries=one).value == pytest.approx(truth[0, (1,)])


# Large ones


@pytest.mark.parametrize("strength", [0.1, 1.0, 30.0])
def test_a_grid_equals_the_dense_inverse(strength):
    precision = grid_precision(12, 17, strength)
    model = GaussianNetwork(precision=precision, bounds=(0, 1))
    leak = pdp.leakage(model, pdp.Sum(), scale=1.0)
    covariance = np.linalg.inv(precision.toarray())
    truth = covariance.sum(axis=1) / np.diagonal(covariance)
    assert leak.exact
    assert leak.value == pytest.approx(truth.max(), rel=1e-10)
    assert truth[model.names.index(leak.witness.target)] == pytest.approx(truth.max())


def test_a_long_path_is_a_gaussian_series():
    phi, length = 0.9, 4000
    ends = np.full(length, 1 + phi**2)
    ends[[0, -1]] = 1.0
    path = diags_array(
        [np.full(length - 1, -phi), ends, np.full(length - 1, -phi)], offsets=[-1, 0, 1]
    )
    model = GaussianNetwork(precision=path, bounds=(0, 3))
    series = pdp.GaussianSeries(length=length, correlation=phi, bounds=(0, 3), variance=1.0)
    ours, theirs = (pdp.leakage(one, pdp.Sum(), scale=2.0) for one in (model, series))
    assert ours.exact
    assert ours.value == pytest.approx(theirs.value, rel=1e-9)


def test_too_many_or_too_dense_a_network_is_refused(monkeypatch):
    with pytest.raises(pdp.ModelError, match=r"at most 100,000"):
        GaussianNetwork(precision=eye_array(100_001), bounds=(0, 1))
    monkeypatch.setattr(sparse_inverse, "SPARSE_STEPS", 1e3)
    with pytest.raises(pdp.ModelError, match="too dense"):
        pdp.leakage(GaussianNetwork(precision=grid_precision(20, 20), bounds=(0, 1)), pdp.Sum())


# Calibration, several releases, data


def feeder():
    return GaussianNetwork.from_edges(
        [("a", "b"), ("b", "c"), ("c", "d"), ("b", "e")], strength=0.5, bounds=(0, 6)
    )


def test_a_calibration_is_tight_verified_and_explained(tmp_path):
    model = feeder()
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
    assert cal.leakage.value <= 1.0
    assert pdp.leakage(model, pdp.Sum(), scale=cal.scale * (1 - 1e-6)).lower > 1.0
    again = pdp.Calibration.from_json(cal.to_json())
    assert pdp.verify(again)
    assert again.model == model
    assert "on a graph" in pdp.explain(cal)
    schema = pdp.json_schema()
    Draft202012Validator(schema).validate(json.loads(cal.to_json()))
    release = cal.release(pd.Series({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}))
    assert math.isfinite(release.value)
    pdp.report(cal, tmp_path / "page.html")
    assert pdp.sensitivity(model, pdp.Sum()).overall == 6.0


def test_releases_add_up_in_a_ledger():
    model = feeder()
    first, second = pdp.Sum(clamp=True), pdp.Linear(weights={"a": 1, "b": -1}, clamp=True)
    ledger = pdp.Ledger(model, epsilon=2.0)
    data = dict.fromkeys(model.names, 3.0)
    ledger.release(first, data, epsilon=1.0)
    ledger.release(second, data, epsilon=0.5)
    scales = [entry.scales[0] for entry in ledger.history]
    joint = pdp.leakage(model, [first, second], scale=scales)
    assert ledger.spent == pytest.approx(joint.value, rel=1e-9)
    assert 1.0 <= ledger.spent <= 1.5 + 1e-9
    ledger.charge(0.1)
    assert ledger.spent == pytest.approx(joint.value + 0.5, rel=1e-9)  # all five may move


def test_many_answers_need_no_search_of_signs():
    model = feeder()
    queries = [pdp.Linear(weights=dict.fromkeys(model.names, 1.0) | {"a": k}) for k in range(1, 21)]
    leak = pdp.leakage(model, queries, scale=10.0)
    nobody = pdp.Adversaries.exactly(leak.witness.target)
    one = [pdp.leakage(model, query, scale=10.0, adversaries=nobody).value for query in queries]
    assert leak.exact
    assert leak.value == pytest.approx(sum(one), rel=1e-9)


@pytest.mark.parametrize("clamp", [False, True])
def test_gaussian_noise_counts_every_shift(clamp):
    model = feeder()
    query = pdp.Sum(clamp=clamp)
    shift = pdp.leakage(model, query, scale=10.0).value
    found = pdp.leakage(model, query, scale=10.0, noise="gaussian", delta=1e-6)
    assert found.mu == pytest.approx(shift, rel=1e-9)
    exact = pdp.leakage(model.to_gaussian(), query, scale=10.0, noise="gaussian", delta=1e-6)
    assert found.mu >= exact.mu * (1 - 1e-9)
    both = [query, pdp.Linear(weights={"a": 1, "b": -1}, clamp=clamp)]
    joint = pdp.leakage(model, both, scale=[10.0, 5.0], noise="gaussian", delta=1e-6)
    own = [
        pdp.leakage(model, one, scale=scale).value
        for one, scale in zip(both, (10.0, 5.0), strict=True)
    ]
    assert joint.mu == pytest.approx(math.hypot(*own), rel=1e-6)
    dense = pdp.leakage(model.to_gaussian(), both, scale=[10.0, 5.0], noise="gaussian", delta=1e-6)
    assert joint.mu >= dense.mu * (1 - 1e-9)
    cal = pdp.calibrate(model, query, epsilon=1.0, delta=1e-6, noise="gaussian")
    assert cal.leakage.value <= 1.0
    strongest = pdp.leakage(
        model, query, scale=10.0, noise="gaussian", delta=1e-6,
        adversaries=pdp.Adversaries.strongest(),
    )  # fmt: skip
    assert strongest.exact
    assert strongest.mu == pytest.approx(0.6)


def test_an_audit_stays_below_what_is_promised():
    cal = pdp.calibrate(feeder(), pdp.Sum(), epsilon=1.0)
    found = pdp.audit(cal, draws=4000, confidence=1 - 1e-11, seed=1)  # noise takes no seed
    assert found.lower_bound <= 1.0


# The model


def test_edges_of_any_frame_say_the_same():
    edges = {"from": ["a", "b", "b"], "to": ["b", "c", "d"], "ohm": [1.0, 0.5, 2.0]}
    model = GaussianNetwork.from_edges(pd.DataFrame(edges), strength="ohm", bounds=(0, 1))
    assert model.names == ("a", "b", "c", "d")
    assert model.precision.toarray().tolist() == [
        [2.0, -1.0, 0.0, 0.0],
        [-1.0, 4.5, -0.5, -2.0],
        [0.0, -0.5, 1.5, 0.0],
        [0.0, -2.0, 0.0, 3.0],
    ]
    assert GaussianNetwork.from_edges(pl.DataFrame(edges), strength="ohm", bounds=(0, 1)) == model
    lazy = pl.LazyFrame(edges).select("ohm", "to", "from")
    assert model == GaussianNetwork.from_edges(
        lazy, ends=("from", "to"), strength="ohm", bounds=dict.fromkeys("abcd", (0, 1))
    )
    pairs = list(zip(edges["from"], edges["to"], strict=True))
    alike = GaussianNetwork.from_edges(
        pairs, strength=1, bounds=(0, 1), variance=4.0, names="dcbae"
    )
    assert alike.names == ("d", "c", "b", "a", "e")
    assert alike.precision.toarray()[2].tolist() == [-0.25, -0.25, 1.0, -0.25, 0.0]
    assert alike.couplings == 3


@pytest.mark.parametrize(
    ("edges", "changes", "words"),
    [
        ([("a", "a")], {}, "two different"),
        ([("a", "b"), ("b", "a")], {}, "listed once"),
        ([], {}, "at least one"),
        ([("a", "b", "c")], {}, "pairs"),
        ([("a", None)], {}, "named"),
        ([("a", "b")], {"strength": -1.0}, "zero or more"),
        ([("a", "b")], {"strength": math.nan}, "zero or more"),
        ([("a", "b")], {"strength": "ohm"}, "frame"),
        ([("a", "b")], {"names": ["a"]}, "both ends"),
        ([("a", "b")], {"bounds": {"a": (0, 1)}}, "missing"),
        ([("a", "b")], {"variance": 0.0}, "variance"),
        (pd.DataFrame({"from": ["a"], "to": ["b"]}), {"strength": "ohm"}, "columns"),
        (pd.DataFrame({"from": ["a"], "to": [np.nan]}), {}, "named"),
        (3, {}, "DataFrame"),
    ],
)  # fmt: skip
def test_edges_that_are_none(edges, changes, words):
    with pytest.raises(pdp.PdpError, match=words):
        GaussianNetwork.from_edges(edges, **({"strength": 1.0, "bounds": (0, 1)} | changes))


@pytest.mark.parametrize(
    ("precision", "words"),
    [
        ([[1.0, 0.5]], "square"),
        (np.zeros((0, 0)), "square"),
        ([1.0], "square"),
        ([[1.0, math.nan], [math.nan, 1.0]], "finite"),
        (csc_array(np.array([[1.0, math.inf], [math.inf, 1.0]])), "finite"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[0.0, 0.0], [0.0, 1.0]], "positive diagonal"),
        ([[1.0, 1e-250], [1e-250, 1.0]], "couplings"),
        ([["a"]], "numbers"),
    ],
)
def test_matrices_that_are_no_precision(precision, words):
    with pytest.raises(pdp.ModelError, match=words):
        GaussianNetwork(precision=precision, bounds=(0, 1))


def test_stored_small_digested_large_and_private_withheld():
    model = feeder()
    described = json.loads(json.dumps(model.to_dict()))
    assert Model.from_dict(described) == model
    assert not model.precision.data.flags.writeable
    for broken in ([[0, 9, 1.0]], [["a"]], [[0, 0]], [[-1, 0, 1.0]], [[0.5, 0, 1.0]]):
        with pytest.raises(pdp.PdpError):
            Model.from_dict(described | {"precision": broken})
    large = GaussianNetwork(precision=grid_precision(40, 40), bounds=(0, 1))
    assert "precision" not in large.to_dict()
    assert large.to_dict()["digest"] == large.digest
    assert Model.from_dict(large.to_dict()) is None
    Draft202012Validator(pdp.json_schema()).validate(large.to_dict())
    secret = GaussianNetwork(precision=[[2, -1], [-1, 2]], bounds=(0, 1), provenance="private")
    assert "precision" not in secret.to_dict()
    with pytest.warns(pdp.PrivacyLeakWarning):
        text = pdp.calibrate(secret, pdp.Sum(), epsilon=1.0).to_json()
    assert "precision" not in text
    assert model.learned_with(0.5).estimation_epsilon == 0.5


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("unit", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_units_do_not_matter(unit, scale):
    precision = np.array([[2.0, -1.0, 0.0], [-1.0, 3.0, -1.0], [0.0, -1.0, 2.0]])
    model = GaussianNetwork(precision=precision / unit / unit, bounds=(0, unit))
    plain = GaussianNetwork(precision=precision, bounds=(0, 1))
    expected = pdp.leakage(plain, pdp.Sum(), scale=scale).value
    assert pdp.leakage(model, pdp.Sum(), scale=scale * unit).value == pytest.approx(expected)


def test_degenerate_answers():
    single = GaussianNetwork(precision=[[2.0]], bounds=(0, 3))
    assert pdp.leakage(single, pdp.Sum(), scale=1.0).value == pytest.approx(3.0)
    model = feeder()
    nothing = pdp.Linear(weights=dict.fromkeys(model.names, 0.0) | {"a": 1e-250, "b": 1.0})
    plain = pdp.Linear(weights={"b": 1.0})
    assert pdp.leakage(model, nothing).value == pytest.approx(pdp.leakage(model, plain).value)
    with pytest.raises(pdp.UnsupportedQueryError):
        pdp.leakage(model, pdp.Count(values={1}))
    many = pdp.Blocks(models=[model, single], counts=[2, 1])
    whole = pdp.leakage(many, pdp.Sum()).value
    assert whole == pytest.approx(pdp.leakage(model, pdp.Sum()).value)


@pytest.mark.parametrize("seed", slow_after(8, range(60)))
def test_the_bracket_holds_in_fractions_next_to_singular(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    pairs = [(k, int(rng.integers(k))) for k in range(1, size)]  # a random tree
    strengths = 10.0 ** rng.integers(-3, 11, size=len(pairs))
    edges = pd.DataFrame(pairs, columns=["one", "other"]).assign(strength=strengths)
    width = float(rng.uniform(0.1, 10.0))
    model = GaussianNetwork.from_edges(
        edges, strength="strength", bounds=(0, width), variance=float(rng.uniform(0.1, 9.0))
    )
    weights = rng.uniform(0.1, 2.0, size=size)
    leak = pdp.leakage(model, pdp.Linear(weights=weights), scale=1.0)
    covariance = inverted(exactly(model.precision.toarray()))
    held = [[Fraction(weight)] for weight in weights.tolist()]
    moved = product(covariance, held)
    truth = [Fraction(width) * moved[k][0] / covariance[k][k] for k in range(size)]
    assert Fraction(leak.lower) <= max(truth) <= Fraction(leak.value)
    assert leak.lower <= truth[model.names.index(leak.witness.target)]
