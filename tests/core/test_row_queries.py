"""Questions about several columns: never below brute force over joint laws of whole records."""

import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.row_query import Column, RowQuery
from pdp_calibrate.errors import ModelError, QueryError, UnsupportedQueryError
from tests.oracles.rows import answer_of, records_of
from tests.oracles.vectors import worst_vector_leakage

CITY = Column(name="city", values=("a", "b"))
SICK = Column(name="sick", values=(True,))
INCOME = {"value": "income", "bounds": (0, 100)}


def anyone(*_):
    return True


def random_query(rng):
    """Return a question about income, sick and city, and the bounds it uses."""
    bounds = tuple(sorted(rng.choice([-30.0, -7.0, 0.0, 4.0, 10.0, 25.0], 2, replace=False)))
    kind = rng.choice(["count", "sum", "mean"])
    where = [SICK] if rng.random() < 0.6 else []
    by = [CITY] if rng.random() < 0.6 else []
    if kind == "count" and not (where or by):
        where = [SICK]
    names = [one.name for one in (*where, *by)]
    public = [name for name in names if rng.random() < 0.3]
    missing = {}
    for name in [*names, *([] if kind == "count" else ["income"])]:
        allowed = {"sick": ["zero"], "city": ["zero", "category", "b"], "income": ["zero", 5.0]}
        if rng.random() < 0.5:
            missing[name] = allowed[name][rng.integers(len(allowed[name]))]
    values = {} if kind == "count" else {"value": "income", "bounds": bounds}
    if kind == "count" and set(public) == set(names):
        public = []
    return RowQuery(kind=kind, where=where, by=by, missing=missing, public=public, **values)


def with_sizes(query, people):
    """Return the question with the public numbers of rows that some people of fixed parts have."""
    if not query.is_public_mean:
        return query
    return RowQuery(
        **{name: getattr(query, name) for name in ("kind", "value", "bounds", "where", "by")},
        missing=query.missing,
        public=query.public,
        sizes=[people] * query.parts,
    )


@pytest.mark.parametrize("seed", range(300))
def test_household_price_is_never_below_brute_force(seed):
    """Any joint law of whole records, and above all those where one member decides for all."""
    rng = np.random.default_rng([20, seed])
    query = random_query(rng)
    people = int(rng.integers(1, 4))
    domains = [records_of(query, rng, most=4) for _ in range(people)]
    table = rng.dirichlet(np.full(math.prod(map(len, domains)), 0.3))
    table = table.reshape([len(domain) for domain in domains])
    if rng.random() < 0.7:  # the records of one member say those of all others
        table = np.zeros_like(table)
        for place in range(len(domains[0])):
            others = [rng.integers(len(domain)) for domain in domains[1:]]
            table[(place, *others)] = rng.random() + 0.1
        table /= table.sum()
    scale = float(rng.uniform(0.3, 3)) * query.reach
    numbers = len(answer_of(query, [domains[0][0]]))
    true = worst_vector_leakage(
        table, domains, lambda people: answer_of(query, people), [scale] * numbers, anyone
    )
    model = pdp.Unknown(size=people, bounds=(0, 1))
    claimed = pdp.leakage(model, with_sizes(query, people), scale=scale)
    assert true <= claimed.value * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_some_law_attains_the_household_price(seed):
    rng = np.random.default_rng([21, seed])
    query = random_query(rng)
    people = int(rng.integers(1, 4))
    domain = records_of(query, rng, most=None)

    def distance(pair):
        one, other = (answer_of(query, [record]) for record in pair)
        return sum(abs(a - b) for a, b in zip(one, other, strict=True))

    farthest = max(itertools.combinations(domain, 2), key=distance)
    possible = [[float(one) for one in answer_of(query, [record])] for record in domain]
    records = query.farthest_records()
    assert np.abs(records[0] - records[1]).sum() == pytest.approx(query.reach)
    assert all(any(np.allclose(record, one) for one in possible) for record in records)
    table = np.zeros([2] * people)
    table[(0,) * people] = table[(1,) * people] = 0.5
    scale = query.reach * 0.7
    numbers = len(answer_of(query, [domain[0]]))
    true = worst_vector_leakage(
        table, [farthest] * people, lambda all_: answer_of(query, all_), [scale] * numbers, anyone
    )
    model = pdp.Unknown(size=people, bounds=(0, 1))
    assert true == pytest.approx(pdp.leakage(model, with_sizes(query, people), scale=scale).value)


def test_a_filter_by_a_secret_moves_the_answer_further_than_any_correlation_of_the_values():
    """Correlation 0, and x_2 counts iff x_1 is high: the answer moves 2M where M is claimed."""
    query = RowQuery(kind="sum", where=[SICK], **INCOME)
    low, high = {"income": 0.0, "sick": False}, {"income": 100.0, "sick": True}
    domains = [[low, high], [{"income": 100.0, "sick": False}, {"income": 100.0, "sick": True}]]
    table = np.array([[0.5, 0.0], [0.0, 0.5]])
    true = worst_vector_leakage(
        table, domains, lambda people: answer_of(query, people), [100.0], anyone
    )
    assert true == pytest.approx(2.0)
    group = pdp.GaussianGroup(size=2, correlation=0.0, bounds=(0, 100))
    with pytest.raises(UnsupportedQueryError, match="more than one secret column"):
        pdp.leakage(group, query, scale=100.0)


def quadrature(unknown):
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    grids = np.meshgrid(*[nodes] * unknown, indexing="ij")
    masses = np.meshgrid(*[weights / weights.sum()] * unknown, indexing="ij")
    points = np.stack([grid.ravel() for grid in grids], axis=-1)
    return points, np.prod([mass.ravel() for mass in masses], axis=0)


@pytest.mark.parametrize("seed", range(300))
def test_members_left_out_by_public_columns_are_covered_by_the_group_of_those_that_count(seed):
    """Clamped Gaussian members: the sum of some, while all can be attacked and known."""
    rng = np.random.default_rng([22, seed])
    size, counted = 4, int(rng.integers(1, 4))
    rho = float(rng.uniform(-1 / 3, 1) * 0.999)
    deviation = float(np.exp(rng.uniform(-4, 1)))
    target = int(rng.integers(size))
    others = [j for j in range(size) if j != target]
    known = [j for j in others if rng.random() < 0.4]
    unknown = [j for j in range(counted) if j != target and j not in known]
    if len(unknown) > 2:
        known.append(unknown.pop())
    covariance = deviation**2 * (np.full((size, size), rho) + (1 - rho) * np.eye(size))
    mean = rng.uniform(0, 1, size)
    given = [target, *known]
    laws = []
    fixed = rng.uniform(0, 1, len(known))
    for secret in (0.0, 1.0):
        held = np.array([secret, *fixed])
        solved = np.linalg.solve(covariance[np.ix_(given, given)], covariance[given, :]).T
        centre = mean + solved @ (held - mean[given])
        left = covariance - solved @ covariance[given, :]
        points, masses = quadrature(len(unknown)) if unknown else (np.zeros((1, 0)), np.ones(1))
        root = np.linalg.cholesky(left[np.ix_(unknown, unknown)]) if unknown else np.zeros((0, 0))
        drawn = np.clip(centre[unknown] + points @ root.T, 0, 1).sum(axis=1)
        told = sum(value for value, j in zip(held, given, strict=True) if j < counted)
        laws.append((drawn + told, masses))
    scale = 0.5
    outputs = np.linspace(-1, counted + 1, 81)
    densities = [
        np.exp(-np.abs(outputs[:, None] - atoms) / scale) @ masses for atoms, masses in laws
    ]
    true = np.abs(np.log(densities[0] / densities[1])).max()
    group = pdp.GaussianGroup(size=counted, correlation=rho, bounds=(0, 1))
    query = RowQuery(kind="sum", value="income", bounds=(0, 1))
    assert true <= pdp.leakage(group, query, scale=scale).value * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(300))
def test_parts_of_a_stated_correlation_are_covered_by_the_total(seed):
    """Two members in two public parts, whatever the sign of their correlation."""
    rng = np.random.default_rng([23, seed])
    rho, deviation = float(rng.uniform(-0.99, 0.99)), float(np.exp(rng.uniform(-4, 1)))
    mean, scale = rng.uniform(0, 1, 2), 0.4
    points, masses = quadrature(1)
    outputs = np.linspace(-1, 2, 121)
    densities = []
    for secret in (0.0, 1.0):
        centre = mean[1] + rho * (secret - mean[0])
        drawn = np.clip(centre + points[:, 0] * deviation * math.sqrt(1 - rho**2), 0, 1)
        densities.append(np.exp(-np.abs(outputs[:, None] - drawn) / scale) @ masses)
    # The first part holds the secret itself; the noise of both parts is independent.
    true = 1 / scale + np.abs(np.log(densities[0] / densities[1])).max()
    group = pdp.GaussianGroup(size=2, correlation=abs(rho), bounds=(0, 1))
    query = RowQuery(kind="sum", value="income", bounds=(0, 1), by=[CITY], public=["city"])
    assert true <= pdp.leakage(group, query, scale=scale).value * (1 + 1e-9)


@pytest.mark.parametrize(
    "model",
    [
        pdp.GaussianGroup(size=2, correlation=-0.5, bounds=(0, 100)),
        pdp.GaussianGroup(size=3, correlation=(-0.4, 0.3), bounds=(0, 100)),
        pdp.GaussianSeries(length=3, correlation=-0.2, bounds=(0, 100)),
    ],
)
def test_parts_of_values_that_move_against_each_other_are_refused(model):
    parts = RowQuery(kind="sum", by=[CITY], public=["city"], **INCOME)
    with pytest.raises(UnsupportedQueryError, match="against each other"):
        pdp.leakage(model, parts, scale=1.0)
    total = RowQuery(kind="sum", **INCOME)
    if isinstance(model, pdp.GaussianGroup):  # all others together cannot outweigh the secret
        assert pdp.leakage(model, total, scale=1.0).value > 0
    else:
        with pytest.raises(UnsupportedQueryError, match="against each other"):
            pdp.leakage(model, total, scale=1.0)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (RowQuery(kind="count", where=[SICK]), "not cover counts"),
        (RowQuery(kind="sum", where=[SICK], **INCOME), "more than one secret"),
        (RowQuery(kind="sum", missing={"income": 3.0}, **INCOME), "missing may say"),
        (RowQuery(kind="mean", missing={"income": "zero"}, **INCOME), "missing may say"),
    ],
)
def test_a_correlation_is_refused_with_the_reason(query, words):
    group = pdp.GaussianGroup(size=2, correlation=0.2, bounds=(0, 100))
    with pytest.raises(UnsupportedQueryError, match=words):
        pdp.leakage(group, query, scale=1.0)


def test_blocks_of_different_correlations_say_nothing_of_other_sizes():
    # A group of four is none of these. Correlated by 0.9 its sum moves by 3.7, not by 1.9.
    kinds = [(2, 0.9), (5, 0.1)]
    blocks = [pdp.GaussianGroup(size=n, correlation=rho, bounds=(0, 1)) for n, rho in kinds]
    query = RowQuery(kind="sum", value="income", bounds=(0, 1))
    with pytest.raises(UnsupportedQueryError, match="one correlation for all"):
        pdp.calibrate(pdp.Blocks(models=blocks), query)


def test_other_models_and_larger_domains_are_refused():
    query = RowQuery(kind="count", where=[SICK])
    for model in (
        pdp.BinaryGroup(count_probabilities=[0.4, 0.2, 0.4]),
        pdp.Unknown(size=2, domain=[0, 1, 2]),
        pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2),
    ):
        with pytest.raises(UnsupportedQueryError, match="any dependence"):
            pdp.leakage(model, query, scale=1.0)
    with pytest.raises(UnsupportedQueryError, match="bounds of column"):
        pdp.leakage(
            pdp.GaussianGroup(size=2, correlation=0.2, bounds=(0, 1)),
            RowQuery(kind="sum", **INCOME),
            scale=1.0,
        )


def test_household_prices_of_different_questions_add_up():
    model = pdp.Blocks(models=[pdp.Unknown(size=3, bounds=(0, 1))], counts=[40])
    queries = [
        RowQuery(kind="count", where=[SICK], by=[CITY]),
        RowQuery(kind="mean", where=[SICK], **INCOME),
    ]
    assert pdp.leakage(model, queries, scale=[4.0, 3.0]).value == pytest.approx(6 / 4 + 6 / 3)


@pytest.mark.parametrize("seed", range(40))
def test_queries_survive_json(seed):
    query = random_query(np.random.default_rng([24, seed]))
    again = Query.from_dict(query.to_dict())
    assert again == query
    assert hash(again) == hash(query)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "median", **INCOME}, "kind must be one of"),
        ({"kind": "sum"}, "column of values and bounds"),
        ({"kind": "count", "where": [SICK], "bounds": (0, 1)}, "a count neither"),
        ({"kind": "count"}, "number of rows is public"),
        ({"kind": "sum", "missing": {"income": math.nan}, **INCOME}, "added up"),
        ({"kind": "count", "where": [SICK], "public": ["sick"]}, "every column"),
        ({"kind": "count", "where": [SICK, SICK]}, "twice"),
        ({"kind": "count", "where": [Column(name="sick", values=(None,))]}, "matches no"),
        ({"kind": "sum", "where": [Column(name="income", values=(1,))], **INCOME}, "added up"),
        ({"kind": "count", "where": [SICK], "missing": {"city": "zero"}}, "not asked about"),
        ({"kind": "count", "where": [SICK], "missing": {"sick": "category"}}, "only rule"),
        ({"kind": "count", "by": [CITY], "missing": {"city": "c"}}, "one of its labels"),
        ({"kind": "sum", "missing": {"income": "category"}, **INCOME}, "added up"),
        ({"kind": "sum", "missing": {"income": math.nan}, **INCOME}, "finite"),
        ({"kind": "sum", "missing": {"income": math.inf}, **INCOME}, "finite"),
        ({"kind": "count", "by": [Column(name="city", values=("a", None))]}, "no label"),
        ({"kind": "sum", "most": 3, "keep_by": "who", "seed": "3", **INCOME}, "whole number"),
        ({"kind": "sum", "most": 3, **INCOME}, "say together"),
        ({"kind": "sum", "seed": 3, **INCOME}, "random"),
        ({"kind": "sum", "most": 0, "keep_by": "who", **INCOME}, "at least one"),
        ({"kind": "sum", "sizes": [3], **INCOME}, "are for means"),
    ],
)
def test_questions_that_make_no_sense(options, words):
    with pytest.raises(QueryError, match=words):
        RowQuery(**options)


def test_bounds_must_be_a_range():
    for bounds in [(1, 0), (0, math.inf), (0, 0)]:
        with pytest.raises(ModelError):
            RowQuery(kind="sum", value="income", bounds=bounds)
    with pytest.raises(QueryError, match="unit"):
        RowQuery(kind="sum", value="income", bounds=(-1e300, 1e300))
