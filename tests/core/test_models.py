"""Models: what they accept, what they refuse, how they compare and travel."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model

CELLS = [[0.4, 0.1], [0.1, 0.4]]
BINARY = [[0, 1], [0, 1]]


def table(**changes):
    return pdp.JointTable(**({"probabilities": CELLS, "domains": BINARY} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probabilities": [[0.5, -0.1], [0.2, 0.4]]}, "must not be negative"),
        ({"probabilities": [[np.nan, 0.1], [0.1, 0.4]]}, "finite"),
        ({"probabilities": [[0.4, 0.1], [0.1, 0.3]]}, "sum to 1, got 0.9"),
        ({"probabilities": [[0.4, 0.1, 0.5]]}, "shape"),
        ({"probabilities": "abc"}, "array of numbers"),
        ({"probabilities": [[1.0 - 1e-310, 1e-310], [0, 0]]}, "at least"),
        ({"domains": [[0, 1]]}, "shape"),
        ({"domains": [[0, 1, 2], [0, 1]]}, "shape"),
        ({"domains": [[0, 0], [0, 1]]}, "repeat a value"),
        ({"domains": [[0, float("nan")], [0, 1]]}, "NaN"),
        ({"domains": [[[0], [1]], [0, 1]]}, "hashable"),
        ({"domains": [[], [0, 1]]}, "at least one value"),
        ({"domains": []}, "shape"),
        ({"names": ["a", "a"]}, "differ from each other"),
        ({"names": ["a"]}, "one per tuple"),
        ({"provenance": "guessed"}, "provenance"),
    ],
)
def test_bad_tables_are_refused(changes, message):
    with pytest.raises(pdp.ModelError, match=message):
        table(**changes)


def test_more_cells_than_a_table_may_have_are_refused_with_a_hint():
    with pytest.raises(pdp.ModelError, match="Blocks"):
        pdp.JointTable(probabilities=[1.0], domains=[[0, 1]] * 25)


def test_arrays_are_copied_and_read_only():
    cells = np.array(CELLS)
    model = table(probabilities=cells)
    cells[0, 0] = 0.9
    assert model.probabilities[0, 0] == 0.4
    with pytest.raises(ValueError, match="read-only"):
        model.probabilities[0, 0] = 0.9
    with pytest.raises(AttributeError):
        model.names = ("a", "b")


def test_models_compare_by_value():
    assert table() == table(probabilities=np.array(CELLS))
    assert hash(table()) == hash(table())
    assert table() != table(names=["a", "b"])
    assert table() != table(probabilities=[[0.3, 0.2], [0.1, 0.4]])
    assert table() != "table"
    assert pdp.ModelSet(models=[table()]) == pdp.ModelSet(models=[table()])
    assert pdp.Blocks(models=[table()]) != pdp.Blocks(models=[table()], counts=[2])


def test_numpy_scalars_become_plain_values():
    model = table(domains=[np.array([0, 1]), np.array(["a", "b"])])
    assert model.domains == ((0, 1), ("a", "b"))
    assert type(model.domains[0][0]) is int


@pytest.mark.parametrize(
    "model",
    [
        table(names=["a", 7]),
        table(domains=[["yes", None], [True, 2.5]]),
        pdp.ModelSet(models=[table(), table(probabilities=[[0.5, 0], [0, 0.5]])]),
        pdp.Blocks(models=[table(), table(names=["a", "b"])], counts=[3, 1]),
    ],
)
def test_descriptions_rebuild_the_model(model):
    assert Model.from_dict(model.to_dict()) == model


def test_a_private_description_holds_no_parameters():
    described = table(provenance="private").to_dict()
    assert set(described) == {"schema", "version", "type", "names", "provenance"}
    assert Model.from_dict(described) is None
    assert Model.from_dict(pdp.ModelSet(models=[table(provenance="private")]).to_dict()) is None
    hidden = {**pdp.Blocks(models=[table(provenance="private")]).to_dict(), "provenance": "public"}
    hidden |= {"models": [described], "counts": [1]}
    assert Model.from_dict(hidden) is None


def test_json_refuses_values_it_cannot_hold():
    with pytest.raises(pdp.ModelError, match="recode"):
        table(domains=[[0, frozenset({1})], [0, 1]]).to_dict()
    with pytest.raises(pdp.ModelError, match="unknown type"):
        Model.from_dict({"type": "Oracle", "names": [], "provenance": "assumed"})
    with pytest.raises(pdp.ModelError, match="lacks"):
        Model.from_dict({"type": "JointTable"})


def test_blocks_keep_names_and_refuse_duplicates():
    named = table(names=["a", "b"])
    assert pdp.Blocks(models=[named, table()]).names == ("a", "b", (1, 0), (1, 1))
    with pytest.raises(pdp.ModelError, match="differ"):
        pdp.Blocks(models=[named, named])
    assert pdp.Blocks(models=[named, named], names="abcd").names == tuple("abcd")


@pytest.mark.parametrize("counts", [[1], [0, 1], [1.5, 1], [True, 1], [-1, 2]])
def test_blocks_refuse_bad_counts(counts):
    with pytest.raises(pdp.ModelError, match="counts"):
        pdp.Blocks(models=[table(), table()], counts=counts)


@pytest.mark.parametrize("models", [[], ["table"]])
@pytest.mark.parametrize("family", [pdp.Blocks, pdp.ModelSet])
def test_blocks_and_sets_need_models(family, models):
    with pytest.raises(pdp.ModelError, match="at least one model"):
        family(models=models)


def test_blocks_do_not_nest():
    with pytest.raises(pdp.ModelError, match="nest"):
        pdp.Blocks(models=[pdp.Blocks(models=[table()])])


def test_members_of_a_set_share_tuples_and_domains():
    with pytest.raises(pdp.ModelError, match="same tuples"):
        pdp.ModelSet(models=[table(), table(names=["a", "b"])])
    with pytest.raises(pdp.ModelError, match="same domains"):
        pdp.ModelSet(models=[table(), table(domains=[[0, 1], [0, 2]])])


def test_the_most_secret_part_decides_the_provenance():
    parts = [table(provenance="public"), table(provenance="private"), table(provenance="dp")]
    assert pdp.Blocks(models=parts).provenance == "private"
    assert pdp.ModelSet(models=[parts[0], parts[2]]).provenance == "dp"


def test_from_conditionals_multiplies():
    model = pdp.JointTable.from_conditionals(
        {"a": {0: 0.6, 1: 0.4}, "b": {"x": 0.5, "y": 0.5}},
        {
            "d": (["c"], {0: {0: 1.0}, 1: {0: 0.2, 1: 0.8}}),
            "c": (["b", "a"], {
                ("x", 0): {0: 0.9, 1: 0.1}, ("x", 1): {0: 0.5, 1: 0.5},
                ("y", 0): {0: 0.3, 1: 0.7}, ("y", 1): {1: 1.0},
            }),
        },
    )  # fmt: skip
    assert model.names == ("a", "b", "d", "c")
    assert model.probabilities.sum() == pytest.approx(1)
    assert model.probabilities[0, 1, 1, 1] == pytest.approx(0.6 * 0.5 * 0.7 * 0.8)
    assert model.probabilities[1, 1, 0, 0] == 0


@pytest.mark.parametrize(
    ("marginals", "conditionals", "message"),
    [
        ({"a": {0: 1.0}}, {"a": (["a"], {0: {0: 1.0}})}, "both a marginal"),
        ({"a": {0: 1.0}}, {"b": (["z"], {0: {0: 1.0}})}, "parents without a law"),
        ({"a": {0: 1.0}}, {"b": ([], {(): {0: 1.0}})}, "at least one"),
        ({"a": {0: 1.0}}, {"b": (["c"], {0: {0: 1.0}}), "c": (["b"], {0: {0: 1.0}})}, "circle"),
        ({"a": {0: 0.5, 1: 0.5}}, {"b": (["a"], {0: {0: 1.0}})}, "every value of its parents"),
        ({"a": {0: 1.0}}, {"b": (["a"], {5: {0: 1.0}})}, "no value of its parents"),
        ({"a": {0: 0.7}}, {}, "sum to 1"),
        ({"a": {0: 1.5, 1: -0.5}}, {}, "non-negative"),
        ({"a": {0: 1 - 1e-200, 1: 1e-200}},
         {"b": (["a"], {0: {0: 1.0}, 1: {0: 1 - 1e-200, 1: 1e-200}})}, "below 2.2e-308"),
    ],
)  # fmt: skip
def test_from_conditionals_refuses(marginals, conditionals, message):
    with pytest.raises(pdp.ModelError, match=message):
        pdp.JointTable.from_conditionals(marginals, conditionals)


LAW = {"a": {0: 0.5, 1: 0.5}}


@pytest.mark.parametrize("build", [pdp.JointTable.from_conditionals, pdp.Network.from_conditionals])
@pytest.mark.parametrize(
    ("marginals", "conditionals", "message"),
    [
        (LAW, {"b": (["a"], [[0.9, 0.1], [0.2, 0.8]])}, "table of b must be a mapping"),
        (LAW, {"b": (["a"], np.eye(2))}, "table of b must be a mapping"),
        (LAW, {"b": (["a"], {0: [0.9, 0.1], 1: [0.2, 0.8]})}, "law of b must be a mapping"),
        (LAW, {"b": ("a", {0: {0: 1.0}, 1: {0: 1.0}})}, "b needs"),
        (LAW, {"b": ["a"]}, "b needs"),
        (LAW, {"b": {0: {0: 1.0}}}, "b needs"),
        (LAW, ["b"], "must be mappings"),
        ({"a": [0.5, 0.5]}, {}, "law of a must be a mapping"),
        ([("a", 0.5)], {}, "must be mappings"),
        (LAW, {"b": (["a"], {0: {0: "x", 1: 1}, 1: {0: 1.0}})}, "not a number"),
    ],
)
def test_laws_of_another_shape_are_named(build, marginals, conditionals, message):
    with pytest.raises(pdp.ModelError, match=message):
        build(marginals, conditionals)


def test_correlation_given_values():
    rng = np.random.default_rng(5)
    cells = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    model = pdp.JointTable(probabilities=cells, domains=[[0, 1], [1, 2, 5], [0, 1]])
    pair = cells[:, :, 1] / cells[:, :, 1].sum()
    x, y = np.repeat([0, 1], 3), np.tile([1, 2, 5], 2)
    weights = pair.ravel()
    covariance = np.cov(x, y, aweights=weights, bias=True)
    truth = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert model.correlation("x1", "x2", given={"x3": 1}) == pytest.approx(truth)
    assert model.correlation("x2", "x1", given={"x3": 1}) == pytest.approx(truth)
    assert model.correlation("x1", "x1") == 1.0


@pytest.mark.parametrize(
    ("i", "given", "message"),
    [
        ("x1", {"x2": 0}, "own tuples"),
        ("z", {}, "unknown tuple"),
        ("x1", {"x3": 9}, "not in its domain"),
        ("x1", {"x3": "c"}, "probability zero"),
        ("x3", {}, "not all numbers"),
        ("x4", {}, "does not vary"),
    ],
)
def test_correlation_refuses(i, given, message):
    cells = np.zeros((2, 2, 3, 1))
    cells[:, :, :2, 0] = 0.125
    model = pdp.JointTable(probabilities=cells, domains=[[0, 1], [0, 1], ["a", "b", "c"], [4]])
    with pytest.raises(pdp.ModelError, match=message):
        model.correlation(i, "x2", given=given)
