"""Degenerate models of every family, with their exact laws.

Constant tuples, values that never occur, twins, deterministic and periodic steps, probabilities
of 1e-300 beside zeros, near-independence, huge offsets. Every discrete model comes with its joint
laws as fractions of the very floats it was built from, so nothing here can underflow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from tests.oracles.exact import Cell, Law

Rng = np.random.Generator
TINY = (1e-300, 1e-200, 1e-100, 1e-17, 1e-9)


@dataclass(frozen=True)
class Drawn:
    """A model and what brute force needs to know of it."""

    family: str
    model: Any
    domains: list[list[Any]] = field(default_factory=list)
    """The values of every tuple, further copies behind the first."""
    origin: list[int] = field(default_factory=list)
    """Which named tuple each of them is a copy of."""
    laws: list[Law] = field(default_factory=list)
    """The members of Θ, or some of them."""
    complete: bool = True
    """Whether `laws` are all members that matter, so that the truth is known, not bounded."""

    @property
    def sizes(self) -> list[int]:
        return [len(domain) for domain in self.domains]


def law(rng: Rng, size: int) -> list[float]:
    """Certain, uniform, ordinary, with zeros, or with entries that are hardly possible."""
    kind = rng.choice(["certain", "uniform", "any", "zeros", "rare", "rare"])
    if kind == "certain":
        numbers = np.eye(size)[rng.integers(size)]
    elif kind == "uniform":
        numbers = np.full(size, 1 / size)
    else:
        numbers = rng.dirichlet(np.ones(size))
        for place in range(1, size):
            if kind == "zeros" and rng.random() < 0.5:
                numbers[place] = 0.0
            if kind == "rare" and rng.random() < 0.7:
                numbers[place] = rng.choice([*TINY, 0.0])
        numbers = rng.permutation(numbers)
        numbers = numbers / numbers.sum()
    return [float(number) for number in numbers]


def rows(rng: Rng, number: int, size: int) -> list[list[float]]:
    """Conditional laws: unrelated, all alike, nearly alike, or deterministic."""
    kind = rng.choice(["any", "alike", "nearly", "map"])
    if kind == "any":
        return [law(rng, size) for _ in range(number)]
    if kind == "map":
        return [np.eye(size)[rng.integers(size)].tolist() for _ in range(number)]
    first = np.array(law(rng, size))
    found = []
    for _ in range(number):
        row = first * (1 + (rng.choice([1e-8, 1e-12, 1e-15]) if kind == "nearly" else 0.0)
                       * rng.normal(size=size))  # fmt: skip
        found.append((row / row.sum()).tolist())
    return found


def values(rng: Rng, size: int) -> list[Any]:
    """Distinct numbers: small, with a huge offset, tiny, or reals."""
    kind = rng.choice(["small", "small", "small", "offset", "tiny", "real"])
    whole = rng.choice(np.arange(-3, 6), size, replace=False).tolist()
    if kind == "offset":
        start = rng.choice([10**6, 10**9, 10**12, 17 * 10**14])
        return [int(start) + value for value in whole]
    if kind == "tiny":
        return [1e-9 * value for value in whole]
    if kind == "real":
        return (rng.normal(scale=2, size=size).round(3) + 1e-5 * np.arange(size)).tolist()
    return whole


def sizes_of(rng: Rng, most: int = 4, cells: int = 40) -> list[int]:
    while True:
        sizes = rng.choice([1, 2, 2, 3], size=int(rng.integers(1, most, endpoint=True))).tolist()
        if math.prod(sizes) <= cells:
            return [int(size) for size in sizes]


def law_of_array(cells: Any) -> Law:
    array = np.asarray(cells)
    return {
        tuple(int(k) for k in cell): Fraction(float(array[cell]))
        for cell in np.ndindex(array.shape)
        if array[cell] > 0
    }


def draw_cells(rng: Rng, sizes: Sequence[int]) -> Any:
    """A joint table: product, nearly a product, twins, parity, sparse, or rare cells."""
    shape = tuple(sizes)
    kind = rng.choice(["product", "nearly", "twins", "parity", "sparse", "rare", "never"])
    total = math.prod(shape)
    if kind in ("product", "nearly"):
        cells = np.ones(())
        for size in shape:
            cells = np.multiply.outer(cells, np.array(law(rng, size)))
        if kind == "nearly":
            cells = cells * (1 + rng.choice([1e-8, 1e-12, 1e-15]) * rng.normal(size=shape))
    elif kind == "twins":
        cells = np.zeros(shape)
        for cell in np.ndindex(shape):
            if len({k % min(s for s in shape) for k in cell}) == 1:
                cells[cell] = rng.random()
    elif kind == "parity":
        cells = np.zeros(shape)
        for cell in np.ndindex(shape):
            cells[cell] = float(sum(cell) % 2 == 0)
    else:
        cells = rng.dirichlet(np.ones(total)).reshape(shape)
        if kind == "sparse":
            cells[rng.random(shape) < 0.5] = 0.0
        elif kind == "rare":
            mask = rng.random(shape) < 0.6
            cells[mask] = rng.choice([*TINY, 0.0], size=int(mask.sum()))
        else:
            axis = int(rng.integers(len(shape)))
            index: list[Any] = [slice(None)] * len(shape)
            index[axis] = int(rng.integers(shape[axis]))
            if shape[axis] > 1:
                cells[tuple(index)] = 0.0
    if cells.sum() <= 0:
        cells = np.full(shape, 1 / total)
    return cells / cells.sum()


def draw_table(rng: Rng, sizes: list[int] | None = None) -> Drawn:
    sizes = sizes_of(rng) if sizes is None else sizes
    domains = [values(rng, size) for size in sizes]
    model = pdp.JointTable(probabilities=draw_cells(rng, sizes), domains=domains)
    return _drawn("JointTable", model, domains, [law_of_array(model.probabilities)])


def _drawn(family: str, model: Any, domains: list[list[Any]], laws: list[Law]) -> Drawn:
    return Drawn(family, model, domains, list(range(len(domains))), laws)


def draw_blocks(rng: Rng) -> Drawn:
    """Up to three blocks, of which the first may stand there twice."""
    blocks = [draw_table(rng, sizes_of(rng, 2, 6)) for _ in range(int(rng.integers(1, 3)))]
    if rng.random() < 0.3:
        blocks.append(draw_chain(rng, longest=2))
    counts = [1] * len(blocks)
    if rng.random() < 0.3:
        counts[0] = 2
    model = pdp.Blocks(models=[block.model for block in blocks], counts=counts)
    starts = np.cumsum([0, *(len(block.domains) for block in blocks)]).tolist()
    parts = list(enumerate(blocks)) + [(0, blocks[0])] * (counts[0] - 1)
    domains = [domain for _, block in parts for domain in block.domains]
    origin = [starts[k] + j for k, block in parts for j in range(len(block.domains))]
    joint: dict[Cell, Fraction] = {(): Fraction(1)}
    for _, block in parts:
        joint = {
            head + tail: mass * more
            for head, mass in joint.items()
            for tail, more in block.laws[0].items()
        }
    return Drawn("Blocks", model, domains, origin, [joint])


def draw_set(rng: Rng) -> Drawn:
    sizes = sizes_of(rng, 3, 18)
    domains = [values(rng, size) for size in sizes]
    members = [
        pdp.JointTable(probabilities=draw_cells(rng, sizes), domains=domains)
        for _ in range(int(rng.integers(1, 4)))
    ]
    laws = [law_of_array(member.probabilities) for member in members]
    return _drawn("ModelSet", pdp.ModelSet(models=members), domains, laws)


def draw_transition(rng: Rng, states: int) -> list[list[float]]:
    kind = rng.choice(["rows", "rows", "periodic", "identity", "absorbing"])
    if kind == "periodic":
        return np.roll(np.eye(states), 1, axis=1).tolist()
    if kind == "identity":
        return np.eye(states).tolist()
    found = rows(rng, states, states)
    if kind == "absorbing":
        found[-1] = np.eye(states)[-1].tolist()
    return found


def draw_chain(rng: Rng, *, longest: int = 4) -> Drawn:
    states = int(rng.choice([1, 2, 2, 3]))
    length = int(rng.integers(1, longest if states < 3 else min(longest, 3), endpoint=True))
    transition, numbers = draw_transition(rng, states), values(rng, states)
    initial = None if rng.random() < 0.5 else law(rng, states)
    try:
        model = pdp.MarkovChain(
            transition=transition, length=length, states=numbers, initial=initial
        )
    except pdp.ModelError:  # reducible: no stationary start
        initial = law(rng, states)
        model = pdp.MarkovChain(
            transition=transition, length=length, states=numbers, initial=initial
        )
    steps = [[Fraction(float(p)) for p in row] for row in model.transition]
    start = stationary(steps) if initial is None else [Fraction(p) for p in model.initial.tolist()]
    return _drawn(
        "MarkovChain", model, [numbers] * length, [law_of_paths(start, [steps] * (length - 1))]
    )


def stationary(steps: list[list[Fraction]]) -> list[Fraction]:
    """The stationary law by the Markov chain tree theorem, exactly."""
    size = len(steps)
    weights = []
    for root in range(size):
        others = [k for k in range(size) if k != root]
        total = Fraction(0)
        for targets in itertools.product(range(size), repeat=len(others)):
            arrows = dict(zip(others, targets, strict=True))
            if all(_reaches(state, root, arrows) for state in others):
                total += math.prod((steps[a][b] for a, b in arrows.items()), start=Fraction(1))
        weights.append(total)
    return [weight / sum(weights) for weight in weights]


def _reaches(state: int, root: int, arrows: dict[int, int]) -> bool:
    for _ in range(len(arrows) + 1):
        if state == root:
            return True
        state = arrows[state]
    return state == root


def law_of_paths(start: list[Fraction], steps: list[list[list[Fraction]]]) -> Law:
    found: dict[Cell, Fraction] = {(k,): mass for k, mass in enumerate(start) if mass}
    for step in steps:
        found = {
            (*path, state): mass * more
            for path, mass in found.items()
            for state, more in enumerate(step[path[-1]])
            if more
        }
    return found


def draw_mixing(rng: Rng) -> Drawn:
    """The set, and some of its members: chains that stay, alternate, or start anywhere."""
    states, length = int(rng.choice([1, 2, 2, 3])), int(rng.integers(1, 4, endpoint=True))
    numbers = values(rng, states)
    diameter = float(rng.choice([0.0, 1e-9, 0.5, 2.0, 8.0, 200.0]))
    model = pdp.MixingChain(length=length, states=numbers, diameter=diameter)
    laws = []
    for _ in range(3):
        tilt = rng.choice([-1.0, 1.0], size=(states, states)) * diameter / 4 * (1 - 1e-9)
        kernel = np.exp(tilt + rng.choice([0.0, 50.0]) * rng.normal(size=states))
        kernel = kernel / kernel.sum(axis=1, keepdims=True)
        steps = [[Fraction(float(p)) for p in row] for row in kernel]
        start = [Fraction(p) for p in law(rng, states)]
        laws.append(law_of_paths(start, [steps] * (length - 1)))
    return Drawn(
        "MixingChain", model, [numbers] * length, list(range(length)), laws, complete=False
    )


def draw_tree(rng: Rng) -> Drawn:
    sizes = sizes_of(rng)
    order = rng.permutation(len(sizes)).tolist()
    parents: list[Any] = [None] * len(sizes)
    tables: list[Any] = [None] * len(sizes)
    for rank, place in enumerate(order):
        if rank == 0:
            tables[place] = law(rng, sizes[place])
            continue
        parents[place] = order[int(rng.integers(rank))]
        tables[place] = rows(rng, sizes[parents[place]], sizes[place])
    domains = [values(rng, size) for size in sizes]
    model = pdp.MarkovTree(domains=domains, parents=parents, tables=tables)
    exact = [np.asarray(table) for table in model.tables]
    joint = {}
    for cell in itertools.product(*map(range, sizes)):
        mass = Fraction(1)
        for place, parent in enumerate(parents):
            entry = exact[place][cell[place]] if parent is None else exact[place][
                cell[parent], cell[place]
            ]  # fmt: skip
            mass *= Fraction(float(entry))
        if mass:
            joint[cell] = mass
    return _drawn("MarkovTree", model, domains, [joint])


def draw_network(rng: Rng) -> Drawn:
    """Factors with zeros, tiny and huge entries, in circles; some tuples in none."""
    sizes = sizes_of(rng)
    domains = [values(rng, size) for size in sizes]
    while True:
        factors = []
        for _ in range(int(rng.integers(0, len(sizes) + 2))):
            number = int(rng.integers(1, min(3, len(sizes)), endpoint=True))
            scope = tuple(int(k) for k in rng.choice(len(sizes), number, replace=False))
            shape = tuple(sizes[place] for place in scope)
            tiny = float(rng.choice([0.0, 1e-9, 1e-40, 1.0]))
            cells = np.where(rng.random(shape) < 0.3, tiny, rng.exponential(size=shape))
            cells.flat[int(rng.integers(cells.size))] = 1.0
            factors.append((scope, cells * float(rng.choice([1e-30, 1.0, 1e60]))))
        joint = {}
        for cell in itertools.product(*map(range, sizes)):
            mass = Fraction(1)
            for scope, cells in factors:
                mass *= Fraction(float(cells[tuple(cell[place] for place in scope)]))
            if mass:
                joint[cell] = mass
        if joint:
            break
    total = sum(joint.values())
    joint = {cell: mass / total for cell, mass in joint.items()}
    named = [(tuple(f"x{place + 1}" for place in scope), cells) for scope, cells in factors]
    among = {f"x{place + 1}": domain for place, domain in enumerate(domains)}
    return _drawn("Network", pdp.Network(factors=named, domains=among), domains, [joint])


def draw_binary_group(rng: Rng) -> Drawn:
    size = int(rng.integers(1, 4, endpoint=True))
    model = pdp.BinaryGroup(count_probabilities=law(rng, size + 1))
    counts = [Fraction(p) for p in model.count_probabilities.tolist()]
    joint = {
        cell: counts[sum(cell)] / math.comb(size, sum(cell))
        for cell in itertools.product((0, 1), repeat=size)
        if counts[sum(cell)]
    }
    return _drawn("BinaryGroup", model, [[0, 1]] * size, [joint])


def draw_category_group(rng: Rng) -> Drawn:
    size, categories = int(rng.integers(1, 3, endpoint=True)), int(rng.integers(1, 4))
    numbers = values(rng, categories)
    orders: dict[Cell, list[Cell]] = {}
    for cell in itertools.product(range(categories), repeat=size):
        orders.setdefault(tuple(cell.count(k) for k in range(categories)), []).append(cell)
    chances = dict(zip(orders, law(rng, len(orders)), strict=True))
    model = pdp.CategoryGroup(size=size, categories=numbers, count_probabilities=chances)
    total = sum(Fraction(chance) for chance in chances.values())
    joint = {
        cell: Fraction(chances[counts]) / total / len(alike)
        for counts, alike in orders.items()
        if chances[counts]
        for cell in alike
    }
    return _drawn("CategoryGroup", model, [numbers] * size, [joint])


def draw_conditional_ball(rng: Rng) -> Drawn:
    center = draw_table(rng, sizes_of(rng, 3, 12))
    radius = float(rng.choice([0.0, 1e-12, 0.3, 1.0]))
    model = pdp.ConditionalBall(center=center.model, radius=radius)
    return _drawn("ConditionalBall", model, center.domains, [])


def draw_sample(rng: Rng) -> Drawn:
    sizes = sizes_of(rng, 3, 12)
    domains = [values(rng, size) for size in sizes]
    counts = rng.multinomial(int(10 ** rng.uniform(0, 5)), draw_cells(rng, sizes).ravel())
    model = pdp.SampledTable(counts=counts.reshape(sizes), domains=domains, confidence=0.9)
    return _drawn("SampledTable", model, domains, [])


def bounds_of(rng: Rng, number: int) -> list[tuple[float, float]]:
    found = []
    for _ in range(number):
        low = float(rng.choice([0.0, -1.0, 1e9, 1e-9]))
        found.append((low, low + float(rng.choice([1.0, 2.5, 1e-3]))))
    return found


def draw_covariance(rng: Rng, size: int) -> Any:
    """Independent, nearly dependent, in mixed units, or in blocks."""
    kind = rng.choice(["independent", "nearly", "any", "blocks"])
    if kind == "independent":
        covariance = np.eye(size)
    elif kind == "nearly":
        rho = 1 - float(rng.choice([1e-3, 1e-6, 1e-9]))
        covariance = np.full((size, size), rho) + (1 - rho) * np.eye(size)
    else:
        factors = rng.normal(size=(size, size))
        covariance = factors @ factors.T + 0.05 * np.eye(size)
        if kind == "blocks" and size > 1:
            covariance[0, 1:] = covariance[1:, 0] = 0.0
    units = 10.0 ** rng.choice([-6, 0, 0, 0, 6], size=size)
    covariance = covariance * np.outer(units, units)
    return (covariance + covariance.T) / 2


def draw_gaussian(rng: Rng) -> Drawn:
    size = int(rng.integers(1, 4, endpoint=True))
    model = pdp.Gaussian(covariance=draw_covariance(rng, size), bounds=bounds_of(rng, size))
    return Drawn("Gaussian", model, origin=list(range(size)))


def draw_loewner(rng: Rng) -> Drawn:
    size = int(rng.integers(1, 3, endpoint=True))
    factors = rng.normal(size=(size, size))
    covariance = factors @ factors.T + 0.1 * np.eye(size)
    center = pdp.Gaussian(covariance=covariance, bounds=bounds_of(rng, size))
    model = pdp.LoewnerBall(center=center, radius=float(rng.choice([0.0, 1e-9, 0.5, 0.999])))
    return Drawn("LoewnerBall", model, origin=list(range(size)))


def draw_gaussian_group(rng: Rng) -> Drawn:
    size = int(rng.integers(1, 4, endpoint=True))
    least = -1 / (size - 1) if size > 1 else -1.0
    ends = sorted(float(rng.choice([least * 0.99, -1e-9, 0.0, 1e-9, 0.5, 0.99999])) for _ in "ab")
    ends = [max(end, least * 0.99) for end in ends]
    correlation = (ends[0], ends[1]) if rng.random() < 0.5 else ends[0]
    model = pdp.GaussianGroup(size=size, correlation=correlation, bounds=bounds_of(rng, 1)[0])
    return Drawn("GaussianGroup", model, origin=list(range(size)))


def draw_series(rng: Rng) -> Drawn:
    length = int(rng.integers(1, 4, endpoint=True))
    correlation = float(rng.choice([-0.9999, -1e-9, 0.0, 1e-12, 0.5, 0.9999]))
    model = pdp.GaussianSeries(length=length, correlation=correlation, bounds=bounds_of(rng, 1)[0])
    return Drawn("GaussianSeries", model, origin=list(range(length)))


def draw_unknown(rng: Rng) -> Drawn:
    size = int(rng.integers(1, 4, endpoint=True))
    domain = values(rng, int(rng.integers(1, 4)))
    if rng.random() < 0.3:
        low, high = bounds_of(rng, 1)[0]
        model = pdp.Unknown(size=size, bounds=(low, high))
        domain = [low, high]
    else:
        model = pdp.Unknown(size=size, domain=domain)
    return _drawn("Unknown", model, [domain] * size, [])


FAMILIES: dict[str, Callable[[Rng], Drawn]] = {
    "JointTable": draw_table,
    "Blocks": draw_blocks,
    "ModelSet": draw_set,
    "MarkovChain": draw_chain,
    "MarkovTree": draw_tree,
    "MixingChain": draw_mixing,
    "Network": draw_network,
    "BinaryGroup": draw_binary_group,
    "CategoryGroup": draw_category_group,
    "ConditionalBall": draw_conditional_ball,
    "SampledTable": draw_sample,
    "Gaussian": draw_gaussian,
    "LoewnerBall": draw_loewner,
    "GaussianGroup": draw_gaussian_group,
    "GaussianSeries": draw_series,
    "Unknown": draw_unknown,
}
