"""Independent blocks and sets of models, against the oracle on the written-out joint table."""

import functools

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import TableLimit
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from tests.oracles import brute_force as oracle
from tests.support.random_models import adversary_kinds, random_table


def random_blocks(rng: np.random.Generator) -> tuple[list[pdp.JointTable], np.ndarray, list]:
    tables = [random_table(rng, tuples=(1, 2), values=(2, 3)) for _ in range(2)]
    joint = functools.reduce(np.multiply.outer, [table.probabilities for table in tables])
    return tables, joint, [domain for table in tables for domain in table.domains]


@pytest.mark.parametrize("seed", range(60))
def test_blocks_equal_brute_force_on_the_joint_table(seed):
    rng = np.random.default_rng(seed)
    tables, joint, domains = random_blocks(rng)
    blocks = pdp.Blocks(models=tables)
    weights = rng.normal(size=len(domains)).round(1)
    weights[0] = 1.0

    def function(x):
        return sum(w * v for w, v in zip(weights, x, strict=True))

    query = pdp.Linear(weights=weights.tolist())
    for adversaries, admits in adversary_kinds(rng, blocks.names):
        truth, _ = oracle.worst_leakage(joint, domains, function, 1.3, admits)
        leak = pdp.leakage(blocks, query, scale=1.3, adversaries=adversaries)
        assert leak.value == pytest.approx(truth, rel=1e-9, abs=1e-12), adversaries
        assert leak.exact


def too_large_to_write_out(seed, monkeypatch):
    """Random blocks that the library may not write out as one table, and that table."""
    monkeypatch.setattr("pdp_calibrate.core.composite.SHORT_TABLE", TableLimit(0, 0))
    rng = np.random.default_rng(seed)
    tables, joint, domains = random_blocks(rng)
    return rng, pdp.Blocks(models=tables), joint, domains


@pytest.mark.parametrize("seed", range(40))
def test_too_large_to_write_out_gives_a_bracket_around_the_truth(seed, monkeypatch):
    rng, blocks, joint, domains = too_large_to_write_out(seed, monkeypatch)
    for adversaries, admits in adversary_kinds(rng, blocks.names):
        truth, _ = oracle.worst_leakage(joint, domains, sum, 0.8, admits)
        leak = pdp.leakage(blocks, pdp.Sum(), scale=0.8, adversaries=adversaries)
        assert leak.lower <= truth * (1 + 1e-9) + 1e-12, adversaries
        assert leak.value >= truth * (1 - 1e-9) - 1e-12, adversaries


@pytest.mark.parametrize("seed", range(20))
def test_the_tails_give_a_lower_end_that_the_whole_attains(seed, monkeypatch):
    """At r → ±∞ the factor of hidden independent tuples cancels from every ratio."""
    _, blocks, joint, domains = too_large_to_write_out(seed, monkeypatch)
    leak = pdp.leakage(blocks, pdp.Sum(), scale=0.8, adversaries=pdp.Adversaries.weakest())
    witness = leak.witness
    assert witness.output in (-np.inf, np.inf)
    far = oracle.placed(witness, blocks.names, output=np.sign(witness.output) * 60.0)
    attained = oracle.log_density_ratio(joint, domains, sum, 0.8, far)
    assert attained == pytest.approx(leak.lower, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_copies_change_nothing_for_everyone_and_blur_the_weakest(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, tuples=(2, 2), values=(2, 3))
    single = pdp.leakage(table, pdp.Sum(), scale=0.9)
    million = pdp.Blocks(models=[table], counts=[1_000_000])
    assert pdp.leakage(million, pdp.Sum(), scale=0.9).value == pytest.approx(single.value)
    weakest = pdp.Adversaries.weakest()
    alone = pdp.leakage(table, pdp.Sum(), scale=0.9, adversaries=weakest)
    pair = pdp.leakage(
        pdp.Blocks(models=[table], counts=[2]), pdp.Sum(), scale=0.9, adversaries=weakest
    )
    assert pair.exact
    assert pair.value <= alone.value * (1 + 1e-9)
    joint = np.multiply.outer(table.probabilities, table.probabilities)
    truth, _ = oracle.worst_leakage(
        joint, table.domains * 2, sum, 0.9, lambda i, known: not known  # noqa: ARG005
    )  # fmt: skip
    assert pair.value == pytest.approx(truth, rel=1e-9)


def test_three_copies_have_names_of_their_own_when_written_out():
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    blocks = pdp.Blocks(models=[table], counts=[3])
    contributions = lower(pdp.Sum(), blocks)
    (problem,) = split(blocks, contributions, pdp.Adversaries.weakest())
    assert len(set(problem.names)) == 6
    assert problem.names[:2] == ((0, 0), (0, 1))


def test_a_mean_over_copies_divides_by_all_of_them():
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    blocks = pdp.Blocks(models=[table], counts=[50])
    assert pdp.sensitivity(blocks, pdp.Mean()).overall == pytest.approx(1 / 100)


def test_blocks_that_would_underflow_stay_apart():
    rare = pdp.JointTable(probabilities=[[1 - 1e-200, 0], [0, 1e-200]], domains=[[0, 1]] * 2)
    blocks = pdp.Blocks(models=[rare], counts=[2])
    problems = split(blocks, lower(pdp.Sum(), blocks), pdp.Adversaries.weakest())
    assert all(problem.hidden_noise for problem in problems)


@pytest.mark.parametrize("seed", range(20))
def test_a_set_leaks_what_its_worst_member_leaks(seed):
    rng = np.random.default_rng(seed)
    first = random_table(rng, tuples=(2, 3), values=(2, 3))
    sizes = first.probabilities.shape
    members = [first] + [
        pdp.JointTable(
            probabilities=rng.dirichlet(np.ones(first.probabilities.size)).reshape(sizes),
            domains=first.domains,
        )
        for _ in range(2)
    ]
    leaks = [pdp.leakage(member, pdp.Sum()).value for member in members]
    leak = pdp.leakage(pdp.ModelSet(models=members), pdp.Sum())
    assert leak.value == pytest.approx(max(leaks), rel=1e-12)
    assert leaks[leak.witness.index] == pytest.approx(max(leaks), rel=1e-9)
    assert leak.witness.model == members[leak.witness.index]
    cal = pdp.calibrate(pdp.ModelSet(models=members), pdp.Sum(), epsilon=0.6)
    scales = [pdp.calibrate(member, pdp.Sum(), epsilon=0.6).scale for member in members]
    assert cal.scale == pytest.approx(max(scales), rel=1e-9)


def test_a_block_may_be_a_set():
    one = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    two = pdp.JointTable(probabilities=[[0.5, 0.0], [0.0, 0.5]], domains=[[0, 1]] * 2)
    blocks = pdp.Blocks(models=[pdp.ModelSet(models=[one, two]), one])
    leak = pdp.leakage(blocks, pdp.Sum())
    assert leak.value == pytest.approx(2.0)
    assert leak.witness.index == 1
    assert leak.witness.target == (0, 0)


def test_calibrating_blocks_takes_the_worst_block():
    weak = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1]] * 2)
    strong = pdp.JointTable(probabilities=[[0.45, 0.05], [0.05, 0.45]], domains=[[0, 1]] * 2)
    blocks = pdp.calibrate(pdp.Blocks(models=[weak, strong], counts=[7, 9]), pdp.Sum())
    assert blocks.scale == pytest.approx(pdp.calibrate(strong, pdp.Sum()).scale, rel=1e-12)
    assert blocks.baselines["group"] == 2.0


def test_blocks_refuse_what_is_not_additive():
    table = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    with pytest.raises(pdp.UnsupportedQueryError, match="not additive"):
        pdp.leakage(pdp.Blocks(models=[table, table]), pdp.Custom(function=max))
