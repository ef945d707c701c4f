"""Tables by tree, by blocks, from bins, with a confidence; frames that do not work."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.families.table import structure
from pdp_calibrate.families.table.structure import mutual_information, strongest_tree


def chained(rng, rows, keep=0.8):
    """Draw a – b – c – d, each a copy of the one before with some probability."""
    columns = {"a": rng.integers(0, 2, size=rows)}
    for before, name in itertools.pairwise("abcd"):
        fresh = rng.integers(0, 2, size=rows)
        columns[name] = np.where(rng.random(rows) < keep, columns[before], fresh)
    return pd.DataFrame(columns)


def information(law):
    """Σ p log p/(row·column), written out."""
    rows, columns = law.sum(axis=1), law.sum(axis=0)
    return sum(
        law[i, j] * np.log(law[i, j] / (rows[i] * columns[j]))
        for i in range(law.shape[0])
        for j in range(law.shape[1])
        if law[i, j] > 0
    )


def trees(size):
    """Yield the edges of every tree on this many nodes."""
    pairs = list(itertools.combinations(range(size), 2))
    for edges in itertools.combinations(pairs, size - 1):
        reached = {0}
        for _ in range(size):
            reached |= {v for edge in edges if set(edge) & reached for v in edge}
        if len(reached) == size:
            yield edges


@pytest.mark.parametrize("seed", range(8))
def test_the_tree_has_the_largest_mutual_information_of_all_trees(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=5)
    pairs = {
        (i, j): rng.integers(0, 30, size=(sizes[i], sizes[j])).astype(float) + 1
        for i, j in itertools.combinations(range(5), 2)
    }
    weights = {pair: information(counts / counts.sum()) for pair, counts in pairs.items()}
    for pair, counts in pairs.items():
        assert mutual_information(counts) == pytest.approx(weights[pair], abs=1e-12)
    best = max(sum(weights[edge] for edge in edges) for edges in trees(5))
    found = strongest_tree(pairs, 5)
    assert sum(weights[tuple(sorted(edge))] for edge in found) == pytest.approx(best)
    seen = {0}
    for parent, child in found:  # a parent comes before its children
        assert parent in seen
        seen.add(child)


def test_independent_columns_still_make_a_tree():
    pairs = {(0, 1): np.full((2, 2), 5.0), (0, 2): np.full((2, 2), 5.0),
             (1, 2): np.full((2, 2), 5.0)}  # fmt: skip
    assert len(strongest_tree(pairs, 3)) == 2


def test_a_tree_is_found_and_written_out():
    frame = chained(np.random.default_rng(0), 4000)
    fitted = pdp.TableEstimator(structure="chow-liu", smoothing=1.0, source="public").fit(frame)
    assert {frozenset(edge) for edge in fitted.tree_} == {
        frozenset("ab"), frozenset("bc"), frozenset("cd")
    }  # fmt: skip
    model = fitted.model_
    assert model.names == ("a", "b", "c", "d")
    counts = pd.crosstab(frame["b"], frame["c"]).to_numpy() + 1.0
    law = model.probabilities.sum(axis=(0, 3))
    assert law / law.sum(axis=1, keepdims=True) == pytest.approx(
        counts / counts.sum(axis=1, keepdims=True)
    )
    # a and d are independent given b, whatever the rows say
    given = model.probabilities[:, 1].sum(axis=1)
    assert given / given.sum() == pytest.approx(
        np.outer(given.sum(axis=1), given.sum(axis=0)) / given.sum() ** 2
    )
    joint = pdp.TableEstimator(source="public").fit(frame).model_
    scales = [pdp.calibrate(one, pdp.Sum()).scale for one in (model, joint)]
    assert scales[0] == pytest.approx(scales[1], rel=0.1)


def test_a_tree_of_one_column():
    one = pdp.TableEstimator(structure="chow-liu", source="public").fit(
        pd.DataFrame({"a": [0, 1, 1]})
    )
    assert one.tree_ == ()
    assert one.model_.probabilities == pytest.approx(np.array([1.5, 2.5]) / 4)


def survey(rng, rows, items):
    """Answers 1 … 5 that follow each other from item to item."""
    answers = [rng.integers(1, 6, size=rows)]
    for _ in range(items - 1):
        changed = np.clip(answers[-1] + rng.integers(-1, 2, size=rows), 1, 5)
        answers.append(np.where(rng.random(rows) < 0.6, changed, rng.integers(1, 6, size=rows)))
    return pd.DataFrame({f"q{k}": answer for k, answer in enumerate(answers)})


SCALE = [1, 2, 3, 4, 5]


@pytest.mark.parametrize("epsilon", [200.0])
def test_a_tree_too_large_for_a_table_stays_a_tree(epsilon):
    frame = survey(np.random.default_rng(5), 1000, 25)
    domains = dict.fromkeys(frame, SCALE)
    fitted = pdp.TableEstimator(
        structure="chow-liu", domains=domains, epsilon=epsilon, source="public"
    ).fit(frame)
    model = fitted.model_
    assert isinstance(model, pdp.MarkovTree)
    assert isinstance(model, pdp.Network)
    assert model.estimation_epsilon == epsilon
    assert model.provenance == ("public" if epsilon is None else "dp")
    assert sorted(fitted.tree_) == sorted((f"q{k}", f"q{k + 1}") for k in range(24))
    leak = pdp.leakage(model, pdp.Sum(), scale=40.0)
    assert 0.1 < leak.lower < leak.value < 100 / 40


def test_a_network_on_a_stated_graph():
    frame = survey(np.random.default_rng(6), 4000, 4)
    circle = [("q0", "q1"), ("q1", "q2"), ("q2", "q3"), ("q3", "q0")]
    fitted = pdp.TableEstimator(
        structure="network", edges=circle, smoothing=1e-3, source="public"
    ).fit(frame)
    assert isinstance(fitted.model_, pdp.Network)
    # The chord makes two triangles, whose marginals are those of the rows.
    assert max(len(before) for _, before in fitted.families_) == 2
    joint = pdp.TableEstimator(smoothing=1e-9, source="public").fit(frame).model_.probabilities
    learned = fitted.model_.to_table().probabilities
    assert learned.sum(axis=(2, 3)) == pytest.approx(joint.sum(axis=(2, 3)), abs=1e-4)


def test_a_learned_network_is_private_unless_it_is_said_otherwise():
    frame = survey(np.random.default_rng(7), 500, 3)
    line = [("q0", "q1"), ("q1", "q2")]
    domains = dict.fromkeys(frame, SCALE)
    private = pdp.TableEstimator(structure="network", edges=line).fit(frame).model_
    assert private.provenance == "private"
    assert "factors" not in private.to_dict()
    noisy = pdp.TableEstimator(
        structure="network", edges=line, domains=domains, epsilon=2.0
    ).fit(frame).model_  # fmt: skip
    assert noisy.provenance == "dp"
    assert noisy.estimation_epsilon == 2.0


def test_columns_that_test_independent_are_put_apart():
    rng = np.random.default_rng(1)
    frame = chained(rng, 3000).assign(e=rng.integers(0, 3, size=3000))
    frame["f"] = np.where(rng.random(3000) < 0.5, frame["e"], 0)
    fitted = pdp.TableEstimator(structure="blocks", level=1e-4, source="public").fit(frame)
    model = fitted.model_
    assert [block.names for block in model.models] == [("a", "b", "c", "d"), ("e", "f")]
    assert model.names == tuple("abcdef")
    assert len(fitted.tests_) == 15
    alone = pdp.TableEstimator(source="public").fit(frame[["e", "f"]]).model_
    assert np.array_equal(model.models[1].probabilities, alone.probabilities)
    assert model.coverage.kind == "no band"
    assert "learned from the rows" in model.coverage.notes[0]
    apart = {test.columns: test for test in fitted.tests_}["a", "e"]
    table = pd.crosstab(frame["a"], frame["e"]).to_numpy()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    g = 2 * np.sum(table * np.log(table / expected))
    assert (apart.statistic, apart.degrees) == (pytest.approx(g), 2)
    assert apart.p_value == pytest.approx(stats.chi2.sf(g, 2))
    pearson = fitted.set_params(test="chi2").fit(frame).tests_
    assert {test.columns: test for test in pearson}["a", "e"].statistic == pytest.approx(
        np.sum((table - expected) ** 2 / expected)
    )
    cal = pdp.calibrate(model, pdp.Sum())
    assert isinstance(cal.release(frame).value, int)


def test_one_block_is_a_table_and_columns_may_have_default_names():
    frame = chained(np.random.default_rng(2), 2000)
    together = pdp.TableEstimator(structure="blocks", source="public").fit(frame).model_
    assert isinstance(together, pdp.JointTable)
    rng = np.random.default_rng(3)
    apart = pd.DataFrame({"x1": rng.integers(0, 2, 50), "x2": [0] * 50})
    blocks = pdp.TableEstimator(structure="blocks", source="public").fit(apart)
    assert blocks.model_.names == ("x1", "x2")
    assert blocks.tests_[0].degrees == 0
    assert not blocks.tests_[0].rejected


@pytest.mark.parametrize(
    ("p_values", "rejected"),
    [
        ([0.0161, 0.06, 0.02], {"none": 2, "holm": 2, "bonferroni": 1}),
        ([0.0161, 0.049, 0.03], {"none": 3, "holm": 1, "bonferroni": 1}),
    ],
)
@pytest.mark.parametrize("correction", ["none", "holm", "bonferroni"])
def test_the_correction_for_many_tests_is_the_one_asked_for(
    correction, p_values, rejected, monkeypatch
):
    given = iter(p_values)

    def known(*_, **__):
        return SimpleNamespace(statistic=1.0, pvalue=next(given), dof=1)

    monkeypatch.setattr(structure, "chi2_contingency", known)
    pairs = dict.fromkeys(itertools.combinations(range(3), 2), np.full((2, 2), 9.0))
    tests = structure.independence_tests(pairs, "abc", test="g", level=0.05, correction=correction)
    assert sum(test.rejected for test in tests) == rejected[correction]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"structure": "chow-liu", "confidence": 0.9}, "confidence needs structure='joint'"),
        (
            {"structure": "network", "edges": [("a", "b")], "confidence": 0.9},
            "confidence needs structure='joint'",
        ),
        ({"structure": "network"}, "edges= states the graph"),
        ({"edges": [("a", "b")]}, "edges= states the graph"),
        ({"structure": "blocks", "confidence": 0.9}, "confidence needs structure='joint'"),
        ({"structure": "blocks", "level": 0.0}, "level must lie strictly between"),
        ({"structure": "blocks", "test": "f"}, "test must be one of"),
        ({"structure": "blocks", "correction": "bonf"}, "correction must be"),
        ({"confidence": 1.5}, "confidence must lie strictly between 0 and 1"),
        ({"confidence": "high"}, "confidence must be a number"),
        ({"domains": {"z": [0]}}, "no column z"),
        ({"bins": {"z": [0, 1]}}, "no column z"),
        ({"bins": {"a": [0, 1]}, "domains": {"a": [0]}}, "has bins and a domain"),
        ({"bins": {"a": [0]}}, "at least two finite edges"),
        ({"bins": {"a": [0, float("inf")]}}, "at least two finite edges"),
        ({"bins": {"a": [0, 0, 1]}}, "increasing"),
        ({"bins": {"a": "wide"}}, "list of numbers"),
        ({"bins": {"a": [0, 0.5]}}, "column a has values outside its bins, which range from 0 to"),
    ],
)
def test_bad_parameters_of_tables_are_refused(parameters, message):
    frame = chained(np.random.default_rng(0), 20)
    with pytest.raises(pdp.ModelError, match=message):
        pdp.TableEstimator(source="public", **parameters).fit(frame)


INCOMES = pd.DataFrame({"income": [0.0, 9.99, 10.0, 29.0, 30.0, 100.0], "ill": [0, 1] * 3})


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_bins_hold_their_lower_edge_and_the_last_both():
    edges = [0, 10, 30, 100]
    fitted = pdp.TableEstimator(bins={"income": edges}, smoothing=1.0, source="public").fit(INCOMES)
    model = fitted.model_
    assert model.domains[0] == (5.0, 20.0, 65.0)
    counts = np.array([[1, 1], [1, 1], [1, 1]]) + 1.0
    assert model.probabilities == pytest.approx(counts / counts.sum())
    inside = fitted.binned(INCOMES)
    assert list(inside["income"]) == [5.0, 5.0, 20.0, 20.0, 65.0, 65.0]
    assert list(inside["ill"]) == list(INCOMES["ill"])
    assert list(INCOMES["income"])[1] == 9.99
    cal = pdp.calibrate(model, pdp.Sum(over=["income"]), epsilon=1.0)
    assert abs(cal.release(inside).value - 180) < 30 * cal.scale
    with pytest.raises(pdp.ModelError, match="a value of income is not in the domain"):
        cal.release(INCOMES)
    with pytest.raises(pdp.ModelError, match="outside its bins"):
        fitted.binned(pd.DataFrame({"income": [101.0], "ill": [0]}))
    assert pdp.TableEstimator(source="public").fit(INCOMES).binned(INCOMES) is INCOMES


def test_bins_on_other_frames():
    polars = pytest.importorskip("polars")
    bins = {"income": [0, 10, 30, 100]}
    model = pdp.TableEstimator(bins=bins, source="public").fit(INCOMES).model_
    other = pdp.TableEstimator(bins=bins, source="public").fit(polars.from_pandas(INCOMES))
    assert other.model_ == model
    private = pdp.TableEstimator(bins=bins, domains={"ill": [0, 1]}, epsilon=1.0, smoothing=0.5)
    assert private.fit(INCOMES).model_.domains == model.domains


@pytest.mark.parametrize(
    ("frame", "parameters", "message"),
    [
        ({"a": [None, None]}, {}, "column a has missing"),
        ({"a": [np.nan, np.nan]}, {"bins": {"a": [0, 1]}}, "column a has missing"),
        ({"a": ["x", "y"]}, {"bins": {"a": [0, 1]}}, "column a must hold numbers to be binned"),
        ({"a": [0, 3]}, {"domains": {"a": [0, 1]}}, "column a holds a value outside its stated"),
        ({"a": [[0], [1]]}, {}, "column a must hold values that can be counted"),
    ],
)
def test_columns_of_the_wrong_kind_are_named(frame, parameters, message):
    frame = pd.DataFrame(frame)
    for kind in ("joint", "chow-liu", "blocks"):
        with pytest.raises(pdp.ModelError, match=message):
            pdp.TableEstimator(structure=kind, source="public", **parameters).fit(frame)


def test_unseen_categories_are_refused_at_release_by_name_only():
    frame = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": ["x", "x", "y", "y"]})
    model = pdp.TableEstimator(source="public").fit(frame).model_
    cal = pdp.calibrate(model, pdp.Count(values={"x"}))
    for data in (frame.assign(a="secret"), {"a": "secret", "b": "x"}):
        with pytest.raises(pdp.ModelError, match="a") as caught:
            cal.release(data)
        assert "secret" not in str(caught.value)


def test_a_confidence_gives_all_tables_that_the_rows_do_not_rule_out():
    frame = chained(np.random.default_rng(4), 30_000)[["a", "b"]]
    stated = {"a": [0, 1], "b": [0, 1]}
    fitted = pdp.TableEstimator(domains=stated, confidence=0.95, source="public").fit(frame)
    model = fitted.model_
    assert isinstance(model, pdp.SampledTable)
    assert model.counts.sum() == 30_000
    assert model.noise_scale == 0.0
    assert model.provenance == "public"
    point = pdp.TableEstimator(source="public").fit(frame).model_
    few = fitted.fit(frame[:4]).model_
    private = pdp.TableEstimator(confidence=0.95, epsilon=1.0, domains=stated).fit(frame)
    assert private.model_.noise_scale == pytest.approx(2.0)
    assert private.model_.estimation_epsilon == 1.0
    leaks = [
        pdp.leakage(one, pdp.Sum(), scale=1.0).value for one in (point, model, private.model_, few)
    ]
    assert leaks == sorted(leaks)
    assert leaks[0] < leaks[1] < leaks[2] < leaks[3]
    assert leaks[3] == pytest.approx(2.0)  # four rows rule nothing out: group privacy


def test_a_confidence_covers_only_stated_values():
    """One value in 500 is often never seen; a set on the values seen cannot hold the truth."""
    rng = np.random.default_rng(8)
    stated = {"a": [0, 1, 2], "b": [0, 1]}
    truth = np.outer([0.6, 0.398, 0.002], [0.5, 0.5])
    unseen = 0
    for _ in range(20):
        cells = rng.choice(6, size=300, p=truth.ravel())
        frame = pd.DataFrame({"a": cells // 2, "b": cells % 2})
        unseen += 2 not in set(frame["a"])
        with pytest.raises(pdp.ModelError, match=r"confidence every column needs .* a, b"):
            pdp.TableEstimator(confidence=0.95, source="public").fit(frame)
        with pytest.raises(pdp.ModelError, match=r"never occurred\. Missing: b\."):
            pdp.TableEstimator(confidence=0.95, domains={"a": [0, 1, 2]}, source="public").fit(
                frame
            )
        fitted = pdp.TableEstimator(confidence=0.95, domains=stated, source="public").fit(frame)
        assert fitted.model_.domains == ((0, 1, 2), (0, 1))
    assert unseen > 5
    edges = {"a": [-0.5, 0.5, 1.5, 2.5], "b": [-0.5, 0.5, 1.5]}
    assert pdp.TableEstimator(confidence=0.95, bins=edges, source="public").fit(frame).model_
