"""Queries: what they lower to, and what they refuse."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.query import Query, lower

TABLE = pdp.JointTable(
    probabilities=np.full((2, 3), 1 / 6), domains=[[0, 1], ["low", "mid", "high"]], names=["a", "b"]
)
NUMBERS = pdp.JointTable(
    probabilities=np.full((2, 2), 0.25), domains=[[0, 1], [-2, 3.5]], names=["a", "b"]
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pdp.Sum(over=[]), "at least one"),
        (lambda: pdp.Sum(over=["a", "a"]), "twice"),
        (lambda: pdp.Count(values=[]), "at least one value"),
        (lambda: pdp.Count(values="yes"), "collection"),
        (lambda: pdp.Count(values=1), "collection"),
        (lambda: pdp.Linear(weights={"a": float("nan")}), "finite"),
        (lambda: pdp.Linear(weights={"a": "x"}), "numbers"),
        (lambda: pdp.Linear(weights=[0, 0]), "constant"),
    ],
)
def test_queries_refuse_nonsense(make, message):
    with pytest.raises(pdp.QueryError, match=message):
        make()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (pdp.Sum(over=["z"]), "no tuple z"),
        (pdp.Linear(weights={"a": 1, "z": 2}), "no tuple z"),
        (pdp.Linear(weights=[1, 2, 3]), "one per tuple"),
        (pdp.Count(values={9}), "no tuple's domain"),
        (pdp.Count(values={"low"}, over=["a"]), "no tuple's domain"),
        (pdp.Sum(), "use Count"),
        (pdp.Custom(function=lambda v: v[1]), "return a number"),
        (pdp.Custom(function=lambda v: 1 / v[0], over=["a"]), "return a number"),
        (pdp.Custom(function=lambda _: float("inf")), "finite"),
        (pdp.Custom(function={(0,): 1.0}, over=["a"]), "return a number"),
        ("sum", "a query such as"),
    ],
)
def test_queries_refuse_models_they_do_not_fit(query, message):
    with pytest.raises(pdp.QueryError, match=message):
        lower(query, TABLE)


def test_sum_of_text_is_fine_where_it_does_not_enter():
    contributions = lower(pdp.Sum(over="a"), TABLE)
    assert [array[:, 0].tolist() for array in contributions.values] == [[0, 1], [0, 0, 0]]


def test_lowered_contributions():
    assert lower(pdp.Mean(), NUMBERS, rows=5).values[1][:, 0].tolist() == [-0.2, 0.35]
    assert lower(pdp.Linear(weights={"b": -2}), NUMBERS).values[1][:, 0].tolist() == [4.0, -7.0]
    count = lower(pdp.Count(values={"low", "high", 1}), TABLE)
    assert [array[:, 0].tolist() for array in count.values] == [[0, 1], [1, 0, 1]]
    assert count.is_integer
    assert not lower(pdp.Sum(), NUMBERS).is_integer
    assert not lower(pdp.Mean(), NUMBERS).is_integer
    custom = lower(pdp.Custom(function=lambda v: v[0] * 10 + v[1], over=["b", "a"]), NUMBERS)
    assert custom.table[1, 0, 0] == -19.0
    assert custom.is_integer


def test_custom_answers_about_one_instance():
    with pytest.raises(pdp.UnsupportedQueryError, match="rows must be 1"):
        lower(pdp.Custom(function=max), NUMBERS, rows=2)


def test_sensitivity_of_a_function_covers_impossible_cells():
    table = pdp.JointTable(probabilities=[[0.5, 0], [0, 0.5]], domains=[[0, 1], [0, 1]])
    product = pdp.Custom(function=lambda v: v[0] * v[1])
    assert pdp.sensitivity(table, product).local == {"x1": 1.0, "x2": 1.0}


def test_queries_compare_by_value_and_hash():
    assert pdp.Sum(over=["a"]) == pdp.Sum(over=("a",))
    assert len({pdp.Linear(weights=[1, 2]), pdp.Linear(weights=(1.0, 2.0))}) == 1
    assert len({pdp.Linear(weights={"a": 1}), pdp.Linear(weights={"a": 1.0})}) == 1
    assert pdp.Count(values=[1, 2]) == pdp.Count(values={2, 1})
    assert hash(pdp.Custom(function=max)) == hash(pdp.Custom(function=max))


def test_a_function_is_stored_as_its_table():
    query = pdp.Custom(function=max)
    with pytest.raises(pdp.QueryError, match="tabulate"):
        query.to_dict()
    stored = Query.from_dict(query.tabulate(NUMBERS).to_dict())
    assert np.array_equal(lower(stored, NUMBERS).table, lower(query, NUMBERS).table)
    with pytest.raises(pdp.QueryError, match="unknown type"):
        Query.from_dict({"type": "Median"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pdp.Adversaries.knowing(at_least=-1), "zero or more"),
        (lambda: pdp.Adversaries.knowing(at_least=2, at_most=1), "must not exceed"),
        (lambda: pdp.Adversaries.knowing(at_most=1.5), "zero or more"),
        (lambda: pdp.Adversaries.exactly("a", known=["a"]), "target"),
        (lambda: pdp.Adversaries.exactly("a", known=["b", "b"]), "repeat"),
        (lambda: pdp.Adversaries.knowing(at_least=2).resolve(NUMBERS), "nobody can know"),
        (lambda: pdp.Adversaries.exactly("z").resolve(NUMBERS), "unknown tuple"),
        (lambda: pdp.Adversaries.exactly("a", known=["z"]).resolve(NUMBERS), "unknown tuple"),
    ],
)
def test_adversaries_refuse_nonsense(make, message):
    with pytest.raises(pdp.PdpError, match=message):
        make()


def test_adversaries_say_what_they_are():
    kinds = pdp.Adversaries
    for made in (
        kinds.all(), kinds.weakest(), kinds.strongest(),
        kinds.knowing(at_least=1, at_most=2), kinds.exactly("a", known=["b"]),
    ):  # fmt: skip
        assert eval(repr(made), {"Adversaries": kinds}) == made  # noqa: S307
        assert kinds.from_dict(made.to_dict()) == made


def test_a_witness_shows_few_of_the_tuples_it_knows_and_json_holds_all():
    chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=400)
    found = pdp.leakage(chain, pdp.Sum(), scale=0.5)
    known = found.witness.known
    assert len(repr(found)) < 200
    assert f"… {len(known) - 3} more}}" in repr(found)
    assert len(found.to_dict()["witness"]["known"]) == len(known) > 300
    few = pdp.leakage(pdp.MarkovChain(transition=chain.transition, length=4), pdp.Sum(), scale=0.1)
    assert repr(few.witness.known) in repr(few)
