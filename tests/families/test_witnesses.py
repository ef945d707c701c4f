"""A witness is one of the adversaries asked about, and attains the lower end when asked alone."""

import itertools

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.support.families import FAMILIES
from tests.support.marks import slow_after
from tests.support.random_models import random_table
from tests.support.random_time import random_chain, random_group

ALONE = 1e-7  # relative: a search for one adversary rounds in other places


def drawn_block(rng: np.random.Generator):
    """A part of a database: discrete, of a few tuples."""
    kinds = [
        lambda: random_table(rng, tuples=(1, 2), values=(2, 3)),
        lambda: random_group(rng),
        lambda: random_chain(rng, longest=3),
        lambda: pdp.Unknown(size=2, domain=[0, 1, 3]),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def gaussian_block(rng: np.random.Generator):
    kinds = [
        lambda: FAMILIES["Gaussian"].draw(rng),
        lambda: FAMILIES["GaussianSeries"].draw(rng),
        lambda: pdp.GaussianGroup(size=3, correlation=0.3, bounds=(0, 2), variance=1.0),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def drawn_blocks(rng: np.random.Generator, draw, *, most: int) -> pdp.Blocks:
    """Two or three blocks, some of them several times; a table of all of them is small or not."""
    blocks = [draw(rng) for _ in range(int(rng.integers(2, 4)))]
    return pdp.Blocks(models=blocks, counts=rng.integers(1, most, size=len(blocks)).tolist())


MODELS = {name: family.draw for name, family in FAMILIES.items()} | {
    "few blocks": lambda rng: drawn_blocks(rng, drawn_block, most=2),
    "many blocks": lambda rng: drawn_blocks(rng, drawn_block, most=40),
    "Gaussian blocks": lambda rng: drawn_blocks(rng, gaussian_block, most=30),
}


def asked_about(rng: np.random.Generator, model, *, gaussian: bool):
    """A query, or a list of them, with scales."""
    weights = rng.choice([1.0, 1.0, 2.0, -1.0, 0.0], size=len(model.names))
    weights[0] = 1.0
    several = [pdp.Sum(), pdp.Linear(weights=weights.tolist())]
    kind = rng.integers(3 if gaussian else 4)
    if kind == 0:
        return pdp.Sum(), float(10 ** rng.uniform(-0.5, 1))
    if kind == 3:
        return pdp.Histogram(), float(10 ** rng.uniform(-0.5, 1))
    if kind == 2:
        return several, [float(10 ** rng.uniform(0, 1)) for _ in several]
    return several[1], float(10 ** rng.uniform(-0.5, 1))


def adversaries(rng: np.random.Generator, total: int, model):
    least = int(rng.integers(0, total))
    most = int(rng.integers(least, total))
    named = rng.permutation(len(model.names))[: int(rng.integers(1, len(model.names) + 1))]
    target, *known = [model.names[place] for place in named]
    return [
        pdp.Adversaries.all(),
        pdp.Adversaries.weakest(),
        pdp.Adversaries.strongest(),
        pdp.Adversaries.knowing(at_least=least, at_most=most),
        pdp.Adversaries.exactly(target, known=known),
    ]


@pytest.mark.parametrize("seed", slow_after(2, range(40)))
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", MODELS)
def test_a_witness_is_admitted_and_attains_the_lower_end_alone(name, noise, seed):
    rng = np.random.default_rng(seed)
    model = MODELS[name](rng)
    query, scale = asked_about(rng, model, gaussian=model.is_continuous)
    asked = {"scale": scale}
    if noise == "gaussian":
        asked |= {"noise": "gaussian", "delta": float(10 ** rng.uniform(-6, -2))}
    for group in adversaries(rng, sum(model.copies), model):
        try:
            leak = pdp.leakage(model, query, adversaries=group, **asked)
        except pdp.PdpError as refused:
            if "is too small: epsilon" not in str(refused):
                raise
            continue  # noise so small that no δ stands beside its ε
        if leak.witness is None:
            assert leak.lower == 0
            continue
        who = leak.witness.adversary
        admitted, alone = group.resolve(model), who.resolve(model)
        assert admitted.fewest <= alone.fewest == alone.most <= admitted.most
        if group.known is not None:
            assert (alone.targets, alone.known) == (admitted.targets, admitted.known)
        again = pdp.leakage(model, query, adversaries=who, **asked)
        assert leak.lower <= again.value * (1 + ALONE) + 1e-11
        assert again.lower <= leak.value * (1 + ALONE) + 1e-11
        if again.exact:
            assert again.lower == pytest.approx(leak.lower, rel=1e-6, abs=1e-9) or not leak.exact


def test_the_adversary_of_a_block_knows_the_others_where_unknown_ones_act_as_noise():
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    group = pdp.BinaryGroup(count_probabilities=[0.3, 0.4, 0.3])
    blocks = pdp.Blocks(models=[group, pair])
    asked = {"scale": 1.5, "noise": "gaussian", "delta": 1e-5}
    leak = pdp.leakage(blocks, pdp.Sum(), **asked)
    assert leak.witness.outside == ((0, 0), (0, 1))
    assert leak.witness.known == {}
    again = pdp.leakage(blocks, pdp.Sum(), adversaries=leak.witness.adversary, **asked)
    assert again.value == pytest.approx(leak.lower, rel=1e-9) == pytest.approx(3.983106, rel=1e-6)
    # Copies have no names of their own; who knows all of them is described in a word.
    many = pdp.Blocks(models=[pair], counts=[5000])
    leak = pdp.leakage(many, pdp.Sum(), **asked)
    assert leak.witness.adversary == pdp.Adversaries.exactly((0, 0), copies=True)
    again = pdp.leakage(many, pdp.Sum(), adversaries=leak.witness.adversary, **asked)
    assert again.value == pytest.approx(leak.lower, rel=1e-9)
    assert pdp.Adversaries.from_dict(leak.witness.adversary.to_dict()) == leak.witness.adversary


def test_copies_have_names():
    coin = pdp.JointTable(probabilities=[0.5, 0.5], domains=[[0, 1]], names=["coin"])
    pair = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["u", "v"]
    )
    blocks = pdp.Blocks(models=[coin, pair], counts=[3, 2])
    names = [blocks.name_at(place) for place in range(7)]
    assert names == ["coin", "u", "v", ("coin", 1), ("u", 1), ("v", 1), ("coin", 2)]
    assert [blocks.place_of(name) for name in names] == list(range(7))
    for unknown in ("w", ("coin", 3), ("coin", 0), ("u", 2), ("coin", 1.5)):
        with pytest.raises(pdp.ModelError, match="unknown tuple"):
            blocks.place_of(unknown)
    asked = {"scale": 1.5, "noise": "gaussian", "delta": 1e-5}
    few = pdp.Adversaries.exactly("u", known=["coin", ("u", 1), ("coin", 2)])
    one = pdp.leakage(blocks, pdp.Sum(), adversaries=few, **asked).value
    everyone = pdp.Adversaries.exactly("u", known=["coin"], copies=True)
    assert one < pdp.leakage(blocks, pdp.Sum(), adversaries=everyone, **asked).value
    nobody = pdp.Adversaries.exactly("u")
    assert pdp.leakage(blocks, pdp.Sum(), adversaries=nobody, **asked).value < one
    for known in itertools.chain(["coin"], [("coin", 1)]):
        assert pdp.Adversaries.exactly("u", known=[known]).resolve(blocks).fewest == 1
