"""Nobody who is screened out leaks more than the cutoff: Theorem 26, and its kernels."""

import itertools
import math

import numpy as np
import pytest

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table import count_search, threshold_kernels
from pdp_calibrate.families.table.count_grid import CountLaws, Neighbours, Singles, reached
from pdp_calibrate.families.table.threshold_bound import Case, ThresholdBound, are_two, two_secrets
from tests.support.marks import bounds_checked
from tests.support.random_tables import additive_problem
from tests.support.table_searches import setting_at


def apart(one: FloatArray, other: FloatArray, t: float) -> FloatArray:
    return np.asarray(np.maximum(one - t * other, 0).sum(axis=0))


def test_a_sum_of_differences_bounds_every_likelihood() -> None:
    """Also where a law has zeros, and with equality for the likelihood that is largest there."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        one, other = rng.dirichlet(np.full(6, 0.5), size=2)
        one[rng.random(6) < 0.2] = 0
        one = one / one.sum() if one.sum() > 0 else other
        gain, s = math.expm1(rng.uniform(0.01, 3)), rng.uniform(1, 3)
        t = max(s, 1 + gain * float(apart(one, other, s)))
        likelihoods = 1 + gain * rng.random((100, 6))
        likelihoods[:50] = 1 + gain * (rng.random((50, 6)) < 0.5)
        assert np.all(likelihoods @ one <= t * (likelihoods @ other) * (1 + 1e-12))
        worst = 1 + gain * (one > s * other)
        assert worst @ one - s * (worst @ other) == pytest.approx(
            1 - s + gain * float(apart(one, other, s))
        )


def excess(
    one: FloatArray, other: FloatArray, groups: Neighbours, d: float, c: float
) -> FloatArray:
    """Return e^−c·(e^c·A − B): what is left above and below once each group settles its own."""
    total = np.zeros(1)
    for begin, end in itertools.pairwise(groups.begins):
        rows = groups.rows[begin:end]
        above, below = apart(one[rows], other[rows], 1.0), apart(other[rows], one[rows], 1.0)
        total = total + np.maximum(above - math.exp(-d) * below, 0)
        total = total - math.exp(-c) * np.maximum(below - math.exp(d) * above, 0)
    return total


@pytest.mark.parametrize("exactly", [True, False])
def test_neighbours_differ_by_one_tuple_and_are_all_there(exactly: bool) -> None:
    for coordinates, tuples in itertools.product(range(1, 6), range(1, 6)):
        vectors = reached(coordinates, tuples, exactly=exactly)
        groups = Neighbours.of(coordinates, tuples, exactly=exactly)
        assert sorted(groups.rows) == list(range(len(vectors)))
        assert groups.begins[0] == 0
        assert groups.begins[-1] == len(vectors)
        for begin, end in itertools.pairwise(groups.begins):
            assert begin < end
            some = vectors[groups.rows[begin:end]]
            differences = np.abs(some[:, np.newaxis] - some).sum(axis=-1)
            assert differences.max() <= min(2, coordinates)


def test_an_excess_bounds_every_likelihood_of_counts() -> None:
    """Outputs anywhere, half of them beyond all counts, where densities differ most."""
    rng, close = np.random.default_rng(2), 0
    for _ in range(300):
        coordinates, tuples = (int(n) for n in rng.integers(1, 5, size=2))
        unit = float(rng.uniform(0.05, 1.0))
        vectors = reached(coordinates, tuples, exactly=False)
        groups = Neighbours.of(coordinates, tuples, exactly=False)
        one, other = rng.dirichlet(np.full(len(vectors), rng.choice([0.3, 3.0, 30.0])), size=2)
        t = float(np.exp(rng.uniform(0, 0.5)))
        d, c = min(2, coordinates) * unit, min(2, coordinates) * unit * tuples
        found = float(excess(one, t * other, groups, d, c)[0])
        outputs = rng.uniform(-1, tuples + 1, size=(200, coordinates))
        outputs[:100] = rng.integers(0, 2, size=(100, coordinates)) * tuples
        densities = np.exp(-unit * np.abs(outputs[:, np.newaxis] - vectors).sum(axis=-1))
        bound = t + math.exp(c) * max(found, 0.0)
        ratios = (densities @ one) / (densities @ other)
        assert np.all(ratios <= bound * (1 + 1e-12))
        close += found > 0 and ratios.max() > t  # neither was screened out
        # Less than the excess without groups, which is that of Theorem 26 without them.
        alone = Neighbours(np.arange(len(vectors)), np.arange(len(vectors) + 1))
        plain = float(excess(one, t * other, alone, 0.0, c)[0])
        assert plain == pytest.approx(
            math.exp(-c) * (1 - t + math.expm1(c) * float(apart(one, other, t)))
        )
        assert found <= plain + 1e-12
    assert close > 20


def leaks_by_pair(
    cells: FloatArray, parts: list[FloatArray], scale: float, case: Case
) -> list[FloatArray]:
    """For every event the largest log-ratio of each two secrets at any output, by logarithms.

    −∞ for a secret that cannot be.
    """
    places = range(cells.ndim)
    known = [place for place in places if place != case.target and place not in case.unknown]
    moving = (case.target, *case.unknown)
    found = []
    for values in itertools.product(*(range(cells.shape[place]) for place in known)):
        index = [slice(None)] * cells.ndim
        for place, value in zip(known, values, strict=True):
            index[place] = value  # type: ignore[call-overload]
        left = [place for place in places if place not in known]
        masses = cells[tuple(index)].transpose([left.index(place) for place in moving])
        atoms = np.zeros((*masses.shape, parts[0].shape[1]))
        for axis, place in enumerate(moving):
            shape = [1] * (masses.ndim + 1)
            shape[axis], shape[-1] = parts[place].shape
            atoms = atoms + parts[place].reshape(shape) / scale
        flat = atoms.reshape(-1, atoms.shape[-1])
        grid = np.array(list(itertools.product(*map(np.unique, flat.T))))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(masses.reshape(len(masses), -1))
            points = atoms.reshape(len(masses), -1, 1, atoms.shape[-1])
            densities = np.logaddexp.reduce(
                logs[:, :, np.newaxis] - np.abs(points - grid).sum(axis=-1), axis=1
            ) - np.logaddexp.reduce(logs, axis=1).reshape(-1, 1)
            ratios = (densities[:, np.newaxis] - densities).max(axis=-1)
        found.append(np.where(np.isnan(ratios), -math.inf, ratios))
    return found


def random_table(rng: np.random.Generator, kind: str) -> FloatArray:
    """A table of three or four tuples, one of them perhaps constant."""
    sizes = tuple(int(size) for size in rng.integers(1, 6, size=rng.integers(3, 5)))
    cells = rng.dirichlet(np.full(math.prod(sizes), rng.choice([0.5, 3.0, 50.0]))).reshape(sizes)
    if kind == "zeros":
        cells[rng.random(sizes) < 0.3] = 0.0
    if kind == "rare":
        cells[rng.random(sizes) < 0.3] = rng.choice([1e-300, 1e-45, 1e-33, 1e-25])
    cells[tuple(0 for _ in sizes)] += 0.05
    return np.asarray(cells / cells.sum())


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["dense", "zeros", "rare"])
@pytest.mark.parametrize("seed", bounds_checked(range(8), 2))
def test_who_is_screened_out_leaks_no_more_than_the_cutoff(kind: str, seed: int) -> None:
    """Every event and every two secrets, from a low cutoff to a high one."""
    rng = np.random.default_rng(seed)
    cells = random_table(rng, kind)
    parts = [np.eye(5)[:size] for size in cells.shape]
    if seed % 4 == 3:
        parts = [part[:, 1:] for part in parts]  # the first value counts nowhere
    scale = float(np.exp(rng.uniform(0.2, 2.2)))
    setting = setting_at(additive_problem(cells, parts), scale)
    bins = count_search._bins(setting)
    assert bins is not None
    cases = [Case(*case) for case in setting.prepared.cases()]
    cases = [case for case in cases if case.unknown]
    exact = {case: leaks_by_pair(cells, parts, scale, case) for case in cases}
    left = 0
    for cutoff in (0.0, 1.1 * 2 / scale, 1.4 * 2 / scale, 2.0 * 2 / scale):
        bound = ThresholdBound(setting, bins, Clock(math.inf))
        bound.screen(cases, cutoff)
        for case in cases:
            own = setting.diameters[case.target]
            group = own + sum(setting.diameters[place] for place in case.unknown)
            every = bound.above(case, -1.0)
            left += len(every.events)
            listed = dict(zip(every.events, every.log_bounds, strict=True))
            rest = min(group, max(cutoff, own)) + 1e-12
            assert bound.largest(case) >= max(leaks.max() for leaks in exact[case]) - 1e-12
            for event, leaks in enumerate(exact[case]):
                assert leaks.max() <= listed.get(event, rest) + 1e-12
            for event, pair in zip(
                every.events[are_two(every.secrets)],
                two_secrets(every.secrets[are_two(every.secrets)]).T,
                strict=True,
            ):
                others = exact[case][event].copy()
                others[pair[0], pair[1]] = others[pair[1], pair[0]] = 0.0
                assert others.max() <= rest
    assert left > 0 or cells.size < 20  # too few cells for any to be left


@pytest.mark.compiled
def test_counts_that_are_lent_stay_until_they_are_given_back() -> None:
    """Then their memory holds the counts of other sets, which are right again."""
    cells = np.random.default_rng(3).random((3, 2, 3, 2, 3))
    bins = tuple(np.arange(size) for size in cells.shape)
    laws = CountLaws(cells, bins, 3)
    sets = [*itertools.permutations(range(5), 2), *itertools.permutations(range(5), 3)]
    expected = {unknown: CountLaws(cells, bins, 3).of(unknown)[1] for unknown in sets}
    for first, second in itertools.pairwise(sets):
        with laws.lent(first) as one, laws.lent(second) as other, laws.lent(first) as again:
            for unknown in sets[::7]:
                with laws.lent(unknown) as found:
                    np.testing.assert_array_equal(found, expected[unknown])
            np.testing.assert_array_equal(one, expected[first])
            np.testing.assert_array_equal(other, expected[second])
            np.testing.assert_array_equal(again, expected[first])
    kept = laws.of(sets[0])[1]
    for unknown in sets:
        with laws.lent(unknown) as found:
            np.testing.assert_array_equal(found, expected[unknown])
    np.testing.assert_array_equal(kept, expected[sets[0]])  # who does not give back keeps it
    with laws.lent((0, 1)) as one:
        pass
    with laws.lent((0, 3)) as other:  # of the same shape
        assert other is one


def kernel_room() -> Singles:
    return np.full((threshold_kernels.ROOM, threshold_kernels.LANES), np.nan, dtype=np.float32)


@pytest.mark.compiled
def test_a_law_is_compared_in_the_same_way_by_kernels_and_arrays() -> None:
    rng = np.random.default_rng(1)
    for counts, number in ((1, 10), (5, 700), (15, 300), (37, 20)):
        masses = rng.random((counts, number)).astype(np.float32)
        masses[:, 3] = 0.0
        masses.setflags(write=False)
        with np.errstate(invalid="ignore"):
            laws = masses / masses.sum(axis=0)
        middle = rng.dirichlet(np.ones(counts)).astype(np.float32) * np.float32(1.2)
        begins = np.unique([0, *rng.integers(counts, size=4), counts])
        groups = Neighbours(rng.permutation(counts), begins)
        shares = np.add.reduceat(middle[groups.rows], begins[:-1])
        t, near, far = np.float32(1.7), np.float32(math.exp(-0.5)), np.float32(math.exp(-0.7))
        least, room = np.float32(1e-12), kernel_room()
        above, below = np.empty((2, number), dtype=np.float32)
        threshold_kernels.compare_with(
            masses, middle, *groups, shares, t, near, far, least, room, above, below
        )
        counted = np.arange(number) != 3
        up = excess(laws, middle[:, np.newaxis], groups, 0.5, 1.2)
        down = excess(middle[:, np.newaxis], 1.7 * laws, groups, 0.5, 1.2)
        np.testing.assert_allclose(above[counted], up[counted], atol=1e-5)
        np.testing.assert_allclose(below[counted], down[counted], atol=1e-5)
        assert above[3] > 1e38
        columns = rng.integers(number, size=(2, 400)).astype(np.uint32)
        ones, others = columns
        blocks = np.empty((2, counts, threshold_kernels.LANES), dtype=np.float32)
        found = np.empty(400, dtype=np.float32)
        threshold_kernels.compare_laws(
            masses, columns, *groups, t, near, far, least, room, blocks, found
        )
        counted = (ones != 3) & (others != 3)
        expected = excess(laws[:, ones], 1.7 * laws[:, others], groups, 0.5, 1.2)
        np.testing.assert_allclose(found[counted], expected[counted], atol=1e-5)
        assert np.all(found[~counted] > 1e38)


@pytest.mark.compiled
@pytest.mark.parametrize("case", bounds_checked([(5, 1), (5, 4), (3, 300), (1, 6), (2, 7)], 5))
def test_all_pairs_far_from_the_middle_are_found(case: tuple[int, int]) -> None:
    """Nobody is compared to himself; without room for all, the number tells."""
    size, after = case
    rng = np.random.default_rng(size)
    parts = rng.random((2, 4 * size * after)).astype(np.float32)
    above, below = parts
    expected = []
    for outer, inner in itertools.product(range(4), range(after)):
        for v, w in itertools.permutations(range(size), 2):
            one, other = ((outer * size + x) * after + inner for x in (v, w))
            if above[one] + below[other] > np.float32(1.2):
                expected.append((one, other))
    for room in (len(expected), len(expected) // 2):
        ones, others = np.zeros((2, room), dtype=np.uint32)
        number = threshold_kernels.far_apart(
            parts, size, after, np.float32(1.2), kernel_room(), ones, others
        )
        assert number == len(expected)
        assert list(zip(ones, others, strict=True)) == expected[:room]
