"""Fronts of an elimination in batches: everyone once, children before parents, none too large."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pdp_calibrate.families.network.elimination import filled
from pdp_calibrate.families.network.fronts import in_batches


def random_fronts(seed):
    """Members of the fronts of a random graph, and how many values its tuples have."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 25))
    near = [set() for _ in range(size)]
    for one, other in itertools.combinations(range(size), 2):
        if rng.random() < 1.5 / size:
            near[one].add(other)
    members = [(number, *later.tolist()) for number, later in enumerate(filled(near))]
    return members, rng.integers(1, 4, size=size).tolist()


@pytest.mark.parametrize("together", [1, 12, 2**16])
@pytest.mark.parametrize("seed", range(20))
def test_batches_hold_every_front_after_those_below_it(seed, together, monkeypatch):
    monkeypatch.setattr("pdp_calibrate.families.network.fronts.MOMENT_TOGETHER", together)
    members, sizes = random_fronts(seed)
    batches = in_batches(members, sizes)
    assert sorted(front for batch in batches for front in batch.fronts) == list(range(len(members)))
    heard = []
    for number, batch in enumerate(batches):
        shapes = {tuple(sizes[member] for member in members[front]) for front in batch.fronts}
        assert len(shapes) == 1
        cells = int(np.prod(shapes.pop()))
        assert len(batch.fronts) * cells <= max(together, cells)
        for run in batch.runs:
            assert run.batch < number
            fronts, children, _, *shape = run.shape
            assert fronts == len(batch.fronts)
            assert fronts * children * cells <= max(together, cells)
            rows = run.rows.reshape(fronts, children)
            for front, row in itertools.product(range(fronts), range(children)):
                child = batches[run.batch].fronts[rows[front, row]]
                _, *said = members[child]
                parent = members[batch.fronts[front]]
                assert said[0] == parent[0]
                assert shape == [sizes[k] if k in said else 1 for k in parent]
                assert run.away == tuple(a for a, k in enumerate(parent, 2) if k not in said)
                heard.append(child)
    # Whoever has nobody left to speak to is a component's last one.
    assert sorted(heard) == [front for front, (_, *later) in enumerate(members) if later]


def test_fronts_alike_go_together_however_many_children_they_have():
    star = [(leaf, 99) for leaf in range(99)] + [(99,)]
    assert [len(batch.fronts) for batch in in_batches(star, [2] * 100)] == [99, 1]
    binary = [(place, place // 2 + 512) for place in range(1022)] + [(1022,)]
    assert len(in_batches(binary, [2] * 1023)) == 10
