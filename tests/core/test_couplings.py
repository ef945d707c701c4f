"""How far couplings move answers, against quantiles in fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.couplings import are_within, furthest_quantiles, moves_but_for
from pdp_calibrate.core.row_query import Column, RowQuery
from tests.oracles import gaussian_mixtures as oracle


def monotone_moves(atoms, first, second) -> list[tuple[Fraction, Fraction]]:
    """Moves and masses of the coupling of equal quantiles, in fractions of the floats given."""
    laws = [[Fraction(float(mass)) for mass in law] for law in (first, second)]
    laws = [[mass / sum(law) for mass in law] for law in laws]
    here, there = 0, 0
    left, right = laws[0][0], laws[1][0]
    found = []
    while here < len(atoms) and there < len(atoms):
        mass = min(left, right)
        if mass:
            found.append((abs(Fraction(float(atoms[here])) - Fraction(float(atoms[there]))), mass))
        left, right = left - mass, right - mass
        if left == 0:
            here += 1
            left = laws[0][here] if here < len(atoms) else Fraction(0)
        if right == 0 and there < len(atoms):
            there += 1
            right = laws[1][there] if there < len(atoms) else Fraction(0)
    return found


def random_laws(rng, size):
    """Two laws on a line, with zeros, rare atoms and levels that meet."""
    atoms = np.sort(rng.choice(np.arange(40), size, replace=False)) * rng.choice([1.0, 0.1, 1e9])
    first, second = rng.dirichlet(np.full(size, rng.choice([0.1, 1.0])), 2)
    kind = rng.integers(5)
    if kind == 0:  # every level meets one of the other law
        second = np.roll(first, 1)
    elif kind == 1:
        first, second = first * 1.0, first[::-1].copy()
    elif kind == 2:
        first[rng.random(size) < 0.4] = 0.0
        second[rng.random(size) < 0.4] = 1e-300
    elif kind == 3:
        first, second = np.full(size, 1 / size), np.full(size, 1 / size)
    first[rng.integers(size)] += 1e-3
    second[rng.integers(size)] += 1e-3
    return atoms, first / first.sum(), second / second.sum()


@pytest.mark.parametrize("seed", range(60))
def test_all_but_a_trace_moves_no_further_than_is_said(seed):
    rng = np.random.default_rng(seed)
    atoms, first, second = random_laws(rng, int(rng.integers(2, 12)))
    moves = monotone_moves(atoms, first, second)
    furthest = float(max(move for move, _ in moves))
    said = float(furthest_quantiles(atoms, first[np.newaxis], second[np.newaxis])[0])
    assert said >= furthest
    for left_out in (1e-18, 1e-13, 1e-9, 1e-3):
        nearly = float(moves_but_for(atoms, first[np.newaxis], second[np.newaxis], left_out)[0])
        assert sum(mass for move, mass in moves if move > nearly) <= left_out
        assert nearly <= said
        if left_out == 1e-9:  # errors of the sums are far below: never further than the truth
            assert nearly <= furthest * (1 + 1e-12)


def test_levels_that_meet_make_no_coupling_jump():
    atoms, law = np.arange(5.0), np.array([[0.1, 0.2, 0.3, 0.4, 0.0]])
    shifted = np.roll(law, 1, axis=1)
    assert furthest_quantiles(atoms, law, shifted)[0] > 1.5  # rounding cannot tell
    assert moves_but_for(atoms, law, shifted, 1e-12)[0] == pytest.approx(1.0)
    # Errors of the probabilities use up what may be left out.
    assert moves_but_for(atoms, law, shifted, 1e-12, error=1e-12)[0] > 1.5


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_out_is_charged(seed):
    rng = np.random.default_rng(100 + seed)
    places = sorted(map(int, rng.choice(12, 5, replace=False)))
    first, second = rng.dirichlet(np.full(5, 0.3), 2)
    sigma, level, left_out = 3.0, 0.5, 10.0 ** -rng.integers(1, 7)
    nearly = moves_but_for(
        np.array(places, dtype=float), first[np.newaxis], second[np.newaxis], left_out
    )[0]
    exact = oracle.delta_by_roots(places, first.tolist(), second.tolist(), sigma, level)
    assert exact <= gaussian_dp.delta_of(nearly / sigma, level) + left_out


@pytest.mark.parametrize("scale", [0.02, 1e-4, 1e-7])
def test_noise_far_below_the_steps_of_an_answer(scale):
    # The atoms do not meet: δ is a sum over them, whatever lies between.
    table = pdp.JointTable(
        probabilities=[[0.3, 0.15, 0.05], [0.1, 0.25, 0.15]], domains=[list("ab"), [0, 1, 5]]
    )
    weakest = pdp.Adversaries.exactly("x1", known=[])
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.5, 0.3])
    found = pdp.leakage(
        table, pdp.Sum(over=["x2"]), scale=scale, noise="gaussian", delta=0.25, adversaries=weakest
    )
    excess = [
        max(sum(max(0.0, a - math.exp(found.value) * b) for a, b in zip(*pair, strict=True))
            for pair in ((p, q), (q, p)))
    ]  # fmt: skip
    assert excess[0] <= 0.25
    # What the answer's own rounding may tell counts for more beside less noise.
    assert excess[0] == pytest.approx(0.25, rel=1e-8 / scale)


def test_a_chain_whose_unknown_steps_hide_everyone_needs_no_noise():
    chain = pdp.MarkovChain(transition=[[0.5, 0.5]] * 2, length=40, states=[0, 1])
    asked = {"delta": 1e-3, "noise": "gaussian"}
    middle = pdp.Adversaries.exactly(20, known=[])
    with pytest.raises(pdp.CalibrationError, match="no noise is needed"):
        pdp.calibrate(chain, pdp.Sum(), epsilon=1.5, adversaries=middle, **asked)
    # Its levels all meet: a coupling moves the answer by one step, not by two.
    found = pdp.leakage(chain, pdp.Sum(), scale=3.0, adversaries=middle, **asked)
    assert found.coupled * 3 == pytest.approx(1.0, rel=1e-4)
    assert found.mu * 3 >= 1.0


def tree_of(size: int) -> pdp.Network:
    alike = np.array([[0.9, 0.1], [0.1, 0.9]])
    names = [f"x{place}" for place in range(size)]
    return pdp.Network(
        factors=[(pair, alike) for pair in itertools.pairwise(names)],
        domains={name: [0, 1] for name in names},
    )


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-560, 2.0**520, 2.0**800])
def test_squares_that_vanish_or_overflow_change_no_scale_of_rows(unit):
    """In such a unit every length of a vector was zero, and so was the leakage."""

    def scale(unit):
        by = [Column(name="city", values=("a", "b"))]
        query = RowQuery(kind="sum", value="v", bounds=(-unit, unit), by=by)
        household = pdp.Unknown(size=3, bounds=(0, 1))
        return pdp.calibrate(household, query, epsilon=1.0, delta=1e-6, noise="gaussian").scale

    assert scale(unit) / unit == pytest.approx(scale(1.0), rel=1e-9)


def network_scale(unit):
    query, asked = pdp.Linear(weights=[unit] * 14), {"epsilon": 1.0, "delta": 1e-6}
    return pdp.calibrate(tree_of(14), query, noise="gaussian", **asked).scale


def test_units_that_cannot_be_squared_are_refused():
    """In such a unit every length was zero, and the scale far too small."""
    for unit in (2.0**-100, 2.0**100):
        assert network_scale(unit) / unit == pytest.approx(network_scale(1.0), rel=1e-6)
    for unit in (1e-300, 1e-170, 1e160, 1e240):
        with pytest.raises(pdp.UnsupportedQueryError, match="another unit"):
            network_scale(unit)


def test_laws_within_a_distance_are_never_said_to_be_when_they_are_not():
    rng = np.random.default_rng(3)
    atoms = np.cumsum(rng.integers(1, 4, 9)).astype(float)
    first, second = (rng.dirichlet(np.full(9, 0.5), 200) for _ in range(2))
    first[:50, :3] = second[:50, -3:] = 0.0
    first, second = (law / law.sum(axis=1, keepdims=True) for law in (first, second))
    furthest = furthest_quantiles(atoms, first, second)
    for distance in range(25):
        near = are_within(atoms, first, second, float(distance))
        assert np.all(furthest[near] <= distance * (1 + 1e-12))
        assert np.array_equal(near, furthest <= distance + 1e-9)  # without ties, it misses nothing
    tied = np.array([[0.3, 0.7, 0.0]]), np.array([[0.0, 0.3, 0.7]])
    assert not are_within(np.arange(3.0), *tied, 1.0).any()  # the tie is taken the worse way
