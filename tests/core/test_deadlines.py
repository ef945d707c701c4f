"""With an injected clock: at most one unit of work is done after the deadline."""

import itertools
import math
import sys
import time

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import couplings, finite_noise, gaussian_mixtures, workers
from pdp_calibrate.families.gaussian import alike_noise
from pdp_calibrate.families.network import elimination
from tests.support.networks import grid_edges, grid_precision, ising_factors, regular_tree


class Clock:
    """A clock that passes the deadline when it is read for the k-th time."""

    def __init__(self, reads: int) -> None:
        self.reads, self.left = reads, reads

    def __call__(self) -> float:
        self.left -= 1
        return 0.0 if self.left >= 0 else 1e9

    @property
    def is_over(self) -> bool:
        return self.left < 0


def worked_after(monkeypatch, clock, places) -> list[str]:
    """Note every unit of work that begins after the deadline was read; return the list."""
    begun: list[str] = []

    def noting(name, own):
        def work(*given, **options):
            if clock.is_over:
                begun.append(name)
            return own(*given, **options)

        return work

    for module, name in places:
        monkeypatch.setattr(module, name, noting(name, getattr(module, name)))
    return begun


UNITS = [
    (gaussian_mixtures, "_roots"),
    (gaussian_mixtures, "_coarsely"),
    (gaussian_mixtures, "_steepest"),  # one round of cells
    (finite_noise, "furthest_quantiles"),
    (finite_noise, "moves_but_for"),
    (couplings, "_shifts_below_half"),
]


def table(size: int) -> pdp.JointTable:
    cells = np.random.default_rng(0).dirichlet(np.ones(2**size)).reshape([2] * size)
    return pdp.JointTable(probabilities=cells, domains=[[0, 1 + place] for place in range(size)])


MODELS = {
    "table": table(4),
    "group": pdp.BinaryGroup(count_probabilities=np.random.default_rng(1).dirichlet(np.ones(25))),
    "chain": pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=16, states=[0, 1]),
    "sample": pdp.SampledTable(
        counts=np.rint(1e4 * table(4).probabilities).astype(int), domains=[[0, 1]] * 4,
        confidence=0.9,
    ),
    "letters": pdp.CategoryGroup(
        size=5, categories=[0, 1, 5],
        count_probabilities=np.random.default_rng(2).dirichlet(np.ones(21)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("scale", [0.7, 2.0, 1e10])
@pytest.mark.parametrize("name", MODELS)
def test_one_unit_of_work_at_most_begins_after_the_deadline(monkeypatch, name, scale):
    model, asked = MODELS[name], {"noise": "gaussian", "delta": 1e-11, "scale": scale}
    full = pdp.leakage(model, pdp.Sum(), **asked)
    for reads in itertools.takewhile(lambda number: number < 700, (5**k for k in range(6))):
        clock = Clock(reads)
        with monkeypatch.context() as patched:
            begun = worked_after(patched, clock, UNITS)
            patched.setattr(time, "monotonic", clock)
            found = pdp.leakage(model, pdp.Sum(), time_limit=1.0, **asked)
        assert len(begun) <= 4, begun  # a comparison of quantiles is four of them
        assert len(set(begun) - {"_shifts_below_half"}) <= 1
        assert found.value >= full.lower * (1 - 1e-9)
        assert found.lower <= full.value * (1 + 1e-9)
        if not clock.is_over:
            assert found.value == full.value
            break


@pytest.mark.parametrize("model", [MODELS["table"], MODELS["chain"]], ids=["table", "chain"])
def test_a_calibration_solves_for_no_adversary_after_the_deadline(monkeypatch, model):
    asked = {"noise": "gaussian", "delta": 1e-6, "epsilon": 0.5}
    best = pdp.calibrate(model, pdp.Sum(), **asked)
    for reads in (1, 40, 400):
        clock = Clock(reads)
        with monkeypatch.context() as patched:
            begun = worked_after(patched, clock, UNITS)
            patched.setattr(time, "monotonic", clock)
            found = pdp.calibrate(model, pdp.Sum(), time_limit=1.0, **asked)
        assert len(set(begun) - {"_shifts_below_half"}) <= 1
        assert len(begun) <= 4
        assert found.scale >= best.scale * (1 - 1e-9)
        assert pdp.verify(found).value <= 0.5


def test_what_a_coupling_settles_is_not_searched(monkeypatch):
    for scale in (1e13, 1e50, 1e120):
        clock = Clock(10**9)
        with monkeypatch.context() as patched:
            clock.left = -1  # any comparison counts
            begun = worked_after(patched, clock, UNITS[:3])
            found = pdp.leakage(table(4), pdp.Sum(), scale=scale, noise="gaussian", delta=1e-9)
        assert not begun
        assert found.value == 0.0
        assert found.mu == pytest.approx(10 / scale)


def test_laws_that_are_not_compared_are_bounded():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(40), 3), rng.dirichlet(np.ones(40), 3)
    atoms = np.arange(40.0) * 1e-7
    late = gaussian_mixtures.deltas(atoms, first, second, 0.3, deadline=-math.inf)
    true = gaussian_mixtures.deltas(atoms, first, second, 0.3)
    assert np.all(late.upper >= true.upper)
    assert not late.lower.any()
    both = np.maximum(first - math.exp(0.3) * second, 0).sum(axis=1)
    assert late.upper == pytest.approx(both)
    ends = gaussian_mixtures.epsilon_at(
        atoms, first[0], second[0], above=1e-9, below=1e-9, deadline=-math.inf
    )
    assert ends == (math.inf, 0.0)


def grid(side: int) -> pdp.Network:
    return pdp.Network(
        factors=ising_factors(grid_edges(side, side), 0.3),
        domains={place: [0, 1] for place in range(side**2)},
    )


@pytest.mark.parametrize("adversaries", [pdp.Adversaries.all(), pdp.Adversaries.weakest()])
def test_preparing_a_network_ends_at_the_deadline(monkeypatch, adversaries):
    """A unit of work is a tuple summed out, or the order in which tuples are."""
    asked = {"scale": 3.0, "adversaries": adversaries}
    full = pdp.leakage(grid(12), pdp.Sum(), **asked)
    coarse = pdp.leakage(grid(12), pdp.Sum(), time_limit=0.0, **asked)
    assert coarse.value > full.value
    ended = []
    for reads in (1, 20, 300, 3_000):
        clock = Clock(reads)
        units = [(elimination._Fronts, "upwards"), (elimination, "least_fill")]
        with monkeypatch.context() as patched:
            begun = worked_after(patched, clock, units)
            patched.setattr(time, "monotonic", clock)
            found = pdp.leakage(grid(12), pdp.Sum(), time_limit=1.0, **asked)
        assert len(begun) <= 1
        assert full.lower * (1 - 1e-9) <= found.value <= coarse.value
        ended.append(clock.is_over)
    assert ended[:3] == [True] * 3


def test_a_prepared_network_uses_the_time_of_a_later_search():
    couplings = grid(12).couplings
    budgets, targets = np.ones(144) / 3, range(144)
    prepared = elimination.Elimination(couplings)
    late = prepared.bounds(budgets, targets, deadline=-math.inf)
    full = elimination.Elimination(couplings).bounds(budgets, targets)
    assert late.max() > full.max()
    assert np.array_equal(prepared.bounds(budgets, targets), full)


@pytest.mark.parametrize("answers", [1, 2])
@pytest.mark.parametrize("delta", [{}, {"delta": 1e-6}])
def test_a_series_is_searched_target_by_target_until_the_deadline(monkeypatch, answers, delta):
    model = pdp.GaussianSeries(length=24, correlation=-0.6, bounds=(0, 1), variance=1.0)
    sums = [pdp.Linear(weights=[1.0 + place % 7 for place in range(24)]), pdp.Sum()][:answers]
    query, scale = (sums, [3.0] * 2) if answers == 2 else (sums[0], 3.0)
    asked = {"scale": scale, "noise": "gaussian", **delta}
    full = pdp.leakage(model, query, **asked)
    for reads in (1, 5, 10, 22):
        clock = Clock(reads)
        with monkeypatch.context() as patched:
            begun = worked_after(patched, clock, [(alike_noise._SeriesSearch, "_windows")])
            patched.setattr(time, "monotonic", clock)
            found = pdp.leakage(model, query, time_limit=1.0, **asked)
        assert clock.is_over
        assert len(begun) <= 1
        assert full.value * (1 - 1e-12) <= found.value
        assert found.lower <= full.lower * (1 + 1e-12)


def counting_cases(monkeypatch, clock) -> list[object]:
    """Note every case that a best-first search judges after the deadline; return the list."""
    begun: list[object] = []
    own = workers.best_first

    def best_first(cases, judge, **options):
        def judged(bound, case):
            if clock.is_over:
                begun.append(case)
            return judge(bound, case)

        return own(cases, judged, **options)

    ours = [module for name, module in sys.modules.items() if name.startswith("pdp_calibrate")]
    for module in ours:
        if getattr(module, "best_first", None) is own:
            monkeypatch.setattr(module, "best_first", best_first)
    return begun


def covariance(size: int) -> np.ndarray:
    root = np.random.default_rng(2).normal(size=(size, size + 3))
    return root @ root.T


DENSE = pdp.Gaussian(covariance=covariance(9), bounds=(0, 1))
EVERY_MODEL = MODELS | {
    "hidden set": pdp.ModelSet(models=[table(4), MODELS["table"]]),
    "ball": pdp.ConditionalBall(center=table(4), radius=0.1),
    "tree": regular_tree(40, 3, 0.9),
    "network": grid(9),
    "blocks": pdp.Blocks(models=[table(4), table(5)], counts=[2, 9]),
    "dense": DENSE,
    "Loewner ball": pdp.LoewnerBall(center=DENSE, radius=0.1),
    "Gaussian group": pdp.GaussianGroup(
        size=12, correlation=(-0.01, 0.4), bounds=(0, 1), variance=1.0
    ),
    "Gaussian series": pdp.GaussianSeries(
        length=40, correlation=-0.6, bounds=(0, 1), variance=1.0
    ),
    "Gaussian network": pdp.GaussianNetwork(precision=grid_precision(6, 6, -0.1), bounds=(0, 1)),
    "unknown": pdp.Unknown(size=12, domain=[0, 1, 4]),
}  # fmt: skip


def asked_of(model, question):
    weights = [1.0 + place % 7 for place in range(len(model.names))]
    clamp = model.is_continuous and question == "clamped sum"
    linear = pdp.Linear(weights=weights, clamp=clamp)
    if isinstance(model, pdp.BinaryGroup | pdp.CategoryGroup):  # which answer equal weights alone
        linear = pdp.Sum(over=model.names[: len(model.names) // 2])
    if question == "list":
        return [pdp.Sum(), linear]
    return pdp.Histogram() if question == "histogram" else linear


QUESTIONS = [
    (name, question)
    for name, model in EVERY_MODEL.items()
    for question in ("sum", "list", "clamped sum" if model.is_continuous else "histogram")
    if question != "list" or name not in ("group", "letters")  # which have no bound for it
]


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_every_search_ends_at_the_deadline(monkeypatch, name, question, noise):
    """One case at most of each search is judged after it; the bracket covers the truth."""
    model = EVERY_MODEL[name]
    query = asked_of(model, question)
    asked = {"scale": [3.0] * 2 if isinstance(query, list) else 3.0, "noise": noise}
    full = pdp.leakage(model, query, time_limit=0.2, **asked)
    for reads in (1, 2, 6, 30):
        clock = Clock(reads)
        with monkeypatch.context() as patched:
            begun = counting_cases(patched, clock)
            patched.setattr(time, "monotonic", clock)
            found = pdp.leakage(model, query, time_limit=1.0, **asked)
        assert len(begun) <= 1
        assert found.value >= full.lower * (1 - 1e-9)
        assert found.lower <= full.value * (1 + 1e-9)
        if not clock.is_over:
            break


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_a_calibration_ends_at_the_deadline_and_stays_proved(monkeypatch, name):
    model = EVERY_MODEL[name]
    query = asked_of(model, "sum")
    for reads in (1, 10):
        clock = Clock(reads)
        with monkeypatch.context() as patched:
            begun = counting_cases(patched, clock)
            patched.setattr(time, "monotonic", clock)
            found = pdp.calibrate(model, query, epsilon=0.5, time_limit=1.0)
        assert len(begun) <= 1
        assert pdp.leakage(model, query, scale=found.scale, time_limit=0.2).lower <= 0.5
        assert found.leakage.value <= 0.5
