"""Markov chains against the oracle, the table of reference scales, truncation, and bad input."""

import importlib
import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.calibration.solve import smallest_scale
from pdp_calibrate.core.contraction import birkhoff_bounds, contracted, diameters
from pdp_calibrate.core.model import Model, TableLimit
from tests.families.exchangeable.test_groups import bracket_holds
from tests.oracles import brute_force as oracle
from tests.support.marks import bounds_checked, slow_after
from tests.support.random_models import adversary_kinds
from tests.support.random_time import random_chain, random_query

ALL, WEAKEST = pdp.Adversaries.all(), pdp.Adversaries.weakest()
search = importlib.import_module("pdp_calibrate.families.chain.search")
setup = importlib.import_module("pdp_calibrate.families.chain.windows")
windows = importlib.import_module("pdp_calibrate.families.chain.windows")


def binary(up, stay, length, **changes):
    return pdp.MarkovChain(transition=[[1 - up, up], [1 - stay, stay]], length=length, **changes)


def compare_with_oracle(rng, chain, scale, *, exact):
    query, function = random_query(rng, chain)
    cells = chain.to_table().probabilities
    for adversaries, admits in adversary_kinds(rng, chain.names):
        truth, _ = oracle.worst_leakage(cells, chain.domains, function, scale, admits)
        leak = pdp.leakage(chain, query, scale=scale, adversaries=adversaries)
        if exact or adversaries in (ALL, WEAKEST, pdp.Adversaries.strongest()):
            bracket_holds(leak, truth, scale=scale)
        assert leak.value >= truth * (1 - 1e-12) - 1e-11 / scale
        assert leak.lower <= truth * (1 + 1e-12) + 1e-11 / scale
        witness = leak.witness
        if witness is None or len(witness.known) == chain.length - 1:
            continue
        output = float(np.clip(witness.output, -1e6 * scale - 1e3, 1e6 * scale + 1e3))
        there = oracle.placed(witness, chain.names, output=output)
        ratio = oracle.log_density_ratio(cells, chain.domains, function, scale, there)
        assert ratio >= leak.lower * (1 - 1e-9) - 1e-11 * (1 + 1 / scale)


@pytest.mark.parametrize("seed", bounds_checked(range(60), 6, quick=15))
def test_chains_equal_the_oracle_for_every_kind_of_adversary(seed):
    rng = np.random.default_rng(seed)
    scale = float(rng.choice([1e-2, 0.3, 1.0, 7.0, 1e4]))
    compare_with_oracle(rng, random_chain(rng, longest=5), scale, exact=True)


@pytest.mark.parametrize("seed", bounds_checked(range(40), 8))
def test_without_tables_separated_unknowns_give_a_bracket(seed, monkeypatch):
    monkeypatch.setattr(search, "SHORT_TABLE", TableLimit(0, 0))
    rng = np.random.default_rng(1000 + seed)
    scale = float(rng.choice([0.3, 1.0, 7.0]))
    compare_with_oracle(rng, random_chain(rng, longest=5), scale, exact=False)


@pytest.mark.parametrize("seed", range(6))
def test_six_tuples_equal_the_oracle(seed):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(2), size=2)
    chain = pdp.MarkovChain(transition=transition, length=6)
    cells = chain.to_table().probabilities
    truth, _ = oracle.worst_leakage(cells, chain.domains, sum, 1.5, lambda i, known: True)  # noqa: ARG005
    bracket_holds(pdp.leakage(chain, pdp.Sum(), scale=1.5), truth, scale=1.5)


def windows_by_hand(chain, weights, scale):
    """The worst window, each evaluated by itself: laws by convolution, densities by their sums."""
    length, states = chain.length, range(len(chain.states))
    added = np.outer(weights, chain.states)
    worst = 0.0
    for target in range(length):
        lefts = [_side(chain, added, range(target - 1, low, -1), low, start=True)
                 for low in range(-1, target)]  # fmt: skip
        rights = [_side(chain, added, range(target + 1, high), high, start=False)
                  for high in range(target + 1, length + 1)]  # fmt: skip
        for left, right in itertools.product(
            itertools.chain.from_iterable(lefts), itertools.chain.from_iterable(rights)
        ):
            laws = []
            for v in states:
                law = {a + b + added[target, v]: 0.0 for a in left[v] for b in right[v]}
                for (a, p), (b, q) in itertools.product(left[v].items(), right[v].items()):
                    law[a + b + added[target, v]] += p * q
                if math.fsum(law.values()) > 0:
                    laws.append(law)
            outputs = sorted({atom for law in laws for atom in law})
            logs = [[_log_density(law, r, scale) for r in outputs] for law in laws]
            if len(laws) > 1:
                worst = max(worst, float((np.max(logs, axis=0) - np.min(logs, axis=0)).max()))
    return max(worst, float((added.max(axis=1) - added.min(axis=1)).max()) / scale)


def _side(chain, added, inner, end, *, start):
    """For each value of the known end (or none): secret → {sum over the side: probability}."""
    kernel, states = chain.kernel, range(len(chain.states))
    is_open = end in (-1, chain.length)
    sides = []
    for value in [None] if is_open else states:
        side = []
        for secret in states:
            paths = {(secret, 0.0): 1.0}
            for position in inner:
                further = {}
                for (here, total), p in paths.items():
                    for there in states:
                        step = kernel[there, here] if start else kernel[here, there]
                        key = (there, round(total + added[position, there], 9))
                        further[key] = further.get(key, 0.0) + p * step
                paths = further
            law = {}
            for (here, total), p in paths.items():
                if value is None:
                    weight = chain.start[here] if start else 1.0
                else:
                    weight = kernel[value, here] if start else kernel[here, value]
                law[total] = law.get(total, 0.0) + p * weight
            side.append({total: p for total, p in law.items() if p > 0})
        sides.append(side)
    return sides


def _log_density(law, output, scale):
    total = math.fsum(law.values())
    return math.log(
        math.fsum(p * math.exp(-abs(output - s) / scale) for s, p in law.items()) / total
    )


@pytest.mark.parametrize(
    ("up", "stay", "weights"),
    [
        (0.2, 0.8, [1.0] * 12),
        (0.7, 0.1, [1.0] * 12),
        (0.3, 0.9, [1.0, 0.0, -2.0, 1.0, 1.0, 0.0, 3.0, -1.0, 1.0, 1.0]),
    ],
)
def test_longer_chains_equal_windows_evaluated_one_by_one(up, stay, weights):
    chain = binary(up, stay, len(weights))
    query = pdp.Linear(weights=weights)
    for scale in (0.4, 3.0):
        leak = pdp.leakage(chain, query, scale=scale)
        assert leak.exact
        assert leak.value == pytest.approx(windows_by_hand(chain, weights, scale), rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_bracket_holds_the_truth_to_sixty_digits(seed):
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, longest=4)
    query, function = random_query(rng, chain)
    cells = chain.to_table().probabilities
    for scale in (1e-4, 0.5, 1e5):
        for adversaries, admits in ((ALL, lambda i, k: True), (WEAKEST, lambda i, k: not k)):  # noqa: ARG005
            leak = pdp.leakage(chain, query, scale=scale, adversaries=adversaries)
            exact, _ = oracle.worst_leakage_mpmath(
                cells, chain.domains, lambda x: function(tuple(map(float, x))), scale, admits
            )
            # The table's cells are themselves rounded products: a few units of the last place.
            slack = 1e-15 * min(1.0, 10 / scale)
            assert leak.lower - slack <= float(exact) <= leak.value + slack


@pytest.mark.parametrize("seed", bounds_checked(range(12), 4))
def test_pruning_leaves_out_nobody_worse(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(2), size=2)
    weights = [1.0] * 25 if seed % 2 else rng.integers(-2, 4, size=25).astype(float).tolist()
    scale = float(rng.choice([0.5, 4.0]))
    leaks = []
    for prune in (True, False):
        if not prune:
            monkeypatch.setattr(windows.Rules, "may_prune", False)
        chain = pdp.MarkovChain(transition=transition, length=25)
        leaks.append(pdp.leakage(chain, pdp.Linear(weights=weights), scale=scale))
    assert leaks[0].value == pytest.approx(leaks[1].value, rel=1e-12)
    assert leaks[0].exact


REFERENCE = [  # P(0→1), P(1→1); scales: exact (weakest), all adversaries, Birkhoff
    (0.1, 0.9, 8.6404, 8.6529, 8.908),
    (0.2, 0.8, 3.8489, 3.8537, 3.961),
    (0.3, 0.7, 2.2572, 2.2592, 2.314),
    (0.4, 0.6, 1.4673, 1.4677, 1.491),
    (0.2, 0.5, 1.9536, 1.9540, 1.985),
    (0.3, 0.6, 1.8498, 1.8498, 1.857),
]


@pytest.mark.parametrize("reference", slow_after(3, REFERENCE))
@pytest.mark.compiled
def test_reference_scales(reference):
    up, stay, weakest, everyone, birkhoff = reference
    chain = binary(up, stay, 100)
    alone = pdp.calibrate(chain, pdp.Sum(), adversaries=WEAKEST)
    worst = pdp.calibrate(chain, pdp.Sum())
    assert alone.scale == pytest.approx(weakest, abs=6e-5)
    assert worst.scale == pytest.approx(everyone, abs=6e-5)
    assert alone.leakage.exact
    assert worst.leakage.exact
    assert worst.baselines == {"dp": 1.0, "group": 100.0, "wasserstein": None}
    diameter = float(diameters(chain.kernel, 1)[0][1])
    scale = smallest_scale(
        lambda at: float(birkhoff_bounds(np.full(100, 1 / at), diameter).max()),
        1.0,
        low=0.1,
        high=100.0,
    )
    assert scale == pytest.approx(birkhoff, abs=6e-4)
    assert alone.scale <= worst.scale <= scale


@pytest.mark.compiled
def test_knowing_more_hurts_under_positive_correlation():
    """With ends known on both sides the chain tells more than to someone who knows nothing."""
    chain = binary(0.2, 0.8, 100)
    assert pdp.leakage(chain, pdp.Sum(), scale=2.0).value > 1.001 * (
        pdp.leakage(chain, pdp.Sum(), scale=2.0, adversaries=WEAKEST).value
    )


@pytest.mark.compiled
def test_the_strongest_adversary_is_worst_under_negative_correlation():
    chain = binary(0.8, 0.2, 100)
    leak = pdp.leakage(chain, pdp.Sum(), scale=2.0)
    assert leak.value == pytest.approx(0.5, rel=1e-9)
    assert len(leak.witness.known) == 99
    assert pdp.leakage(chain, pdp.Sum(), scale=2.0, adversaries=WEAKEST).value < 0.4
    assert pdp.calibrate(chain, pdp.Sum()).scale == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("adversaries", [ALL, WEAKEST, pdp.Adversaries.knowing(at_most=3)])
@pytest.mark.parametrize("chances", slow_after(1, [(0.2, 0.8), (0.05, 0.95), (0.8, 0.3)]))
@pytest.mark.compiled
def test_truncation_brackets_the_full_search(chances, adversaries, monkeypatch):
    for scale in (0.8, 6.0):
        cut = pdp.leakage(binary(*chances, 400), pdp.Sum(), scale=scale, adversaries=adversaries)
        with monkeypatch.context() as patch:
            patch.setattr(setup, "FULL_LENGTH", 400)
            full = pdp.leakage(
                binary(*chances, 400), pdp.Sum(), scale=scale, adversaries=adversaries
            )
        assert cut.lower <= full.value * (1 + 1e-9)
        assert cut.value >= full.lower * (1 - 1e-9)
        assert cut.value - cut.lower <= 1e-6 * cut.value


@pytest.mark.parametrize("adversaries", [ALL, WEAKEST, pdp.Adversaries.knowing(at_most=3)])
@pytest.mark.parametrize(("up", "stay"), [(0.46, 0.54), (0.6, 0.45)])
def test_short_chains_that_forget_at_once_are_cut_soundly(up, stay, adversaries, monkeypatch):
    for scale in (0.8, 6.0):
        full = pdp.leakage(binary(up, stay, 24), pdp.Sum(), scale=scale, adversaries=adversaries)
        assert full.exact
        with monkeypatch.context() as patch:
            patch.setattr(setup, "FULL_LENGTH", 2)
            cut = pdp.leakage(binary(up, stay, 24), pdp.Sum(), scale=scale, adversaries=adversaries)
        assert cut.lower <= full.value
        assert cut.value >= full.lower
        assert cut.value - cut.lower <= 1e-6 * cut.value
        assert cut.value != full.value  # it was cut


@pytest.mark.parametrize("eigenvalue", [0.9, 0.5, -0.9])
@pytest.mark.compiled
def test_long_chains_that_mix_have_narrow_brackets(eigenvalue):
    up = 0.5 * (1 - eigenvalue)
    leak = pdp.leakage(binary(up, 1 - up, 10_000), pdp.Sum(), scale=4.0)
    assert leak.value - leak.lower <= 1e-6 * leak.value
    assert leak.value <= float(
        birkhoff_bounds(np.full(10_000, 0.25), abs(4 * math.atanh(eigenvalue))).max() * (1 + 1e-9)
    )


@pytest.mark.slow
@pytest.mark.compiled
def test_chains_that_mix_slowly_or_never_are_still_bracketed():
    slow = pdp.leakage(binary(0.002, 0.998, 3000), pdp.Sum(), scale=300.0)
    assert slow.lower <= slow.value <= 3000 / 300 * (1 + 1e-9)
    turning = pdp.MarkovChain(transition=[[0, 1], [1, 0]], length=300)
    leak = pdp.leakage(turning, pdp.Sum(), scale=3.0)
    assert leak.value == pytest.approx(1 / 3, rel=1e-9)  # the total is known: only x_i itself moves
    frozen = pdp.MarkovChain(transition=np.eye(2), length=300, initial=[0.5, 0.5])
    assert pdp.leakage(frozen, pdp.Sum(), scale=3.0).value == pytest.approx(100.0, rel=1e-9)


@pytest.mark.parametrize("states", [[0, 1, math.sqrt(2)], [-1.25, 3.1, math.pi]])
@pytest.mark.compiled
def test_values_off_any_lattice_are_bracketed(states):
    transition = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]
    chain = pdp.MarkovChain(transition=transition, length=4, states=states)
    cells = chain.to_table().probabilities
    truth, _ = oracle.worst_leakage(cells, chain.domains, sum, 1.0, lambda i, known: True)  # noqa: ARG005
    leak = pdp.leakage(chain, pdp.Sum(), scale=1.0)
    bracket_holds(leak, truth, scale=1.0)
    longer = pdp.MarkovChain(transition=transition, length=40, states=states)
    rounded = pdp.leakage(longer, pdp.Sum(), scale=1.0)
    assert rounded.lower <= rounded.value <= rounded.lower * (1 + 1e-4)
    assert rounded.value >= leak.lower


def test_rounding_to_a_lattice_is_paid_for(monkeypatch):
    monkeypatch.setattr(search, "QUICK_LAWS", 0)
    monkeypatch.setattr(setup, "LATTICE_STEPS", 0.0)
    transition = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]
    rng = np.random.default_rng(3)
    for seed in range(5):
        states = rng.normal(size=3).tolist()
        chain = pdp.MarkovChain(transition=transition, length=4, states=states)
        cells = chain.to_table().probabilities
        truth, _ = oracle.worst_leakage(cells, chain.domains, sum, 0.7, lambda i, known: True)  # noqa: ARG005
        leak = pdp.leakage(chain, pdp.Sum(), scale=0.7)
        assert leak.lower < truth < leak.value, seed
        assert leak.value - leak.lower < 0.05 * truth


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("length", [30, pytest.param(300, marks=pytest.mark.compiled)])
def test_any_scale_is_finite_and_right(factor, length):
    chain = binary(0.1, 0.8, length)
    leak = pdp.leakage(chain, pdp.Sum(), scale=factor)
    assert 1 / factor <= leak.value * (1 + 1e-12)
    assert leak.value <= length / factor * (1 + 1e-12)
    assert leak.value - leak.lower <= 1e-6 * leak.value
    if length == 30:
        assert leak.exact


def test_rare_transitions_do_not_become_impossible():
    ladder = pdp.MarkovChain(
        transition=[[1 - 1e-30, 1e-30, 0], [0, 1 - 1e-30, 1e-30], [0.5, 0, 0.5]],
        length=25,
        states=[0, 1, 2],
    )
    leak = pdp.leakage(ladder, pdp.Sum(), scale=10.0)
    assert leak.exact
    assert 0.2 <= leak.value <= 25 * 2 / 10 * (1 + 1e-12)


def test_calibration_is_tight_and_survives_json():
    chain = binary(0.3, 0.8, 50, initial=[1.0, 0.0])
    cal = pdp.calibrate(chain, pdp.Mean(), epsilon=0.7)
    assert cal.leakage.value <= 0.7
    assert pdp.leakage(chain, pdp.Mean(), scale=cal.scale * (1 - 1e-6)).value > 0.7
    again = pdp.Calibration.from_json(cal.to_json())
    assert again.model == chain
    assert isinstance(cal.release(dict.fromkeys(range(50), 1)).value, float)


def test_unused_tuples_can_still_be_attacked():
    chain = binary(0.01, 0.99, 20)
    leak = pdp.leakage(chain, pdp.Sum(over=range(1, 20)), scale=2.0)
    alone = pdp.leakage(
        chain, pdp.Sum(over=range(1, 20)), scale=2.0, adversaries=pdp.Adversaries.exactly(0)
    )
    assert alone.value > 1.0
    assert leak.value >= alone.value * (1 - 1e-12)


def test_time_limits_give_wider_brackets():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, size=150).tolist()
    chain = binary(0.2, 0.9, 150)
    cut = pdp.leakage(chain, pdp.Linear(weights=weights), scale=8.0, time_limit=0)
    full = pdp.leakage(chain, pdp.Linear(weights=weights), scale=8.0)
    assert cut.lower <= full.value <= cut.value * (1 + 1e-12)


def test_several_coordinates_get_the_birkhoff_bound():
    chain = binary(0.2, 0.8, 60)
    halves = [pdp.Sum(over=range(0, 60, 2)), pdp.Sum(over=range(1, 60, 2))]
    leak = pdp.leakage(chain, halves, scale=[1.0, 1.0])
    assert leak.value == pytest.approx(
        float(birkhoff_bounds(np.ones(60), float(diameters(chain.kernel, 1)[0][1])).max())
    )
    small = pdp.leakage(binary(0.2, 0.8, 4), [pdp.Sum(over=[0, 2]), pdp.Sum()], scale=[1.0, 1.0])
    assert small.exact


def test_blocks_of_chains_cost_their_longest():
    short, long = binary(0.2, 0.8, 20), binary(0.2, 0.8, 60)
    both = pdp.Blocks(models=[short, long], counts=[1000, 10])
    assert pdp.calibrate(both, pdp.Sum()).scale == pytest.approx(
        pdp.calibrate(long, pdp.Sum()).scale, rel=1e-9
    )


def test_contraction_in_both_forms():
    for diameter, distance in itertools.product([0.1, 1.0, 5.0, 60.0], [1e-8, 0.3, 2.0, 80.0]):
        image = contracted(diameter, distance)
        assert 0 <= image <= min(diameter, distance) * (1 + 1e-12)
        product = math.tanh(diameter / 4) * math.tanh(distance / 4)
        if product < 0.999:
            assert image == pytest.approx(4 * math.atanh(product), rel=1e-10)
    assert contracted(math.inf, 3.0) == 3.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transition": [[0.9, 0.2], [0.2, 0.8]]}, "each row of transition must sum to 1"),
        ({"transition": [[1.1, -0.1], [0.2, 0.8]]}, "must not be negative"),
        ({"transition": [[math.nan, 1], [0.2, 0.8]]}, "finite"),
        ({"transition": [[1.0]]}, "a row and a column per state"),
        ({"transition": [0.5, 0.5]}, "a row and a column per state"),
        ({"transition": np.eye(2)}, "irreducible"),
        ({"transition": [[0.5, 0.5], [0, 1]]}, "Pass the law of the first state"),
        ({"length": 0}, "positive whole number"),
        ({"length": 2.5}, "positive whole number"),
        ({"states": [0, 0]}, "repeat a value"),
        ({"initial": [0.5, 0.6]}, "initial must sum to 1"),
        ({"initial": [1.0]}, "one probability per state"),
        ({"names": ["a"]}, "one per tuple"),
        ({"provenance": "guessed"}, "provenance"),
    ],
)
def test_bad_chains_are_refused(changes, message):
    given = {"transition": [[0.9, 0.1], [0.2, 0.8]], "length": 3}
    with pytest.raises(pdp.ModelError, match=message):
        pdp.MarkovChain(**(given | changes))


def test_chains_travel_through_json_and_keep_their_numbers_to_themselves():
    for chain in (binary(0.123, 0.8, 4), binary(0.123, 0.8, 4, initial=[0.1, 0.9], names="abcd")):
        assert Model.from_dict(chain.to_dict()) == chain
        assert "0.123" not in repr(chain)
    assert binary(0.123, 0.8, 4) != binary(0.123, 0.8, 5)
    private = binary(0.123, 0.8, 4, provenance="private")
    assert Model.from_dict(private.to_dict()) is None
    assert len(binary(0.1, 0.8, 10_000).domains) == 10_000


def test_the_stationary_law_is_accurate_entry_by_entry():
    chain = pdp.MarkovChain(transition=[[1 - 1e-200, 1e-200], [1.0, 0.0]], length=2)
    assert chain.start[1] == pytest.approx(1e-200, rel=1e-12)
    with pytest.raises(pdp.ModelError, match="positive but below"):
        pdp.MarkovChain(transition=chain.transition, length=4).to_table()


def test_short_windows_beside_long_ones_do_not_underflow(monkeypatch):
    """The tails of windows that walk side by side are longer than any window of the chain."""
    monkeypatch.setattr("pdp_calibrate.families.chain.windows.COMPILED_CHAIN_STEPS", -1)
    chain = pdp.MarkovChain(transition=[[0.0, 1.0], [0.0, 1.0]], initial=[0.5, 0.5], length=20)
    for scale in np.geomspace(0.02, 0.06, 12):
        leak = pdp.leakage(chain, pdp.Count(values={0}), scale=scale)
        assert leak.value == pytest.approx(1 / scale, rel=1e-9)
        assert leak.exact


@pytest.mark.parametrize("fewest", range(5))
def test_several_numbers_about_a_long_chain_count_what_is_known(fewest, monkeypatch):
    """Whoever knows all others learns what plain DP says; those who know some, no more than that
    all the others moved: beside the joint table of a chain that is taken for a long one."""
    chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=5)
    someone = pdp.Adversaries.knowing(at_least=fewest)
    exact = pdp.leakage(chain.to_table(), pdp.Histogram(), scale=2.0, adversaries=someone)
    monkeypatch.setattr(search, "fits_a_table", lambda *_, **__: False)
    bound = pdp.leakage(chain, pdp.Histogram(), scale=2.0, adversaries=someone)
    assert exact.lower <= bound.value <= (5 - fewest) * (1 + 1e-12)
    known = [name for name in chain.names if name > fewest]
    one = pdp.Adversaries.exactly(0, known=known)
    bound = pdp.leakage(chain, pdp.Histogram(), scale=2.0, adversaries=one)
    exact = pdp.leakage(chain.to_table(), pdp.Histogram(), scale=2.0, adversaries=one)
    assert exact.lower <= bound.value <= (fewest + 1) * (1 + 1e-12)
