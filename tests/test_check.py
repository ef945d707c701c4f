"""The stand-alone checker: it agrees with the engines, and nothing unsound gets past it."""

import ast
import itertools
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pdp_calibrate as pdp
from pdp_calibrate import check as checker
from pdp_calibrate.calibration import certificate, transport_plans
from pdp_calibrate.check import BROKEN, PROVED, UNDECIDED, check
from pdp_calibrate.cli.main import app
from tests.oracles import brute_force
from tests.support.check_cases import calibration, network, random_ledger, shrunk
from tests.support.check_hard import HARD
from tests.support.check_mutants import (
    changed_files,
    changed_orders,
    changed_people,
    changed_plans,
    changed_radii,
    changed_rows,
    changed_trees,
    confirmed,
    confirmed_by,
    sound_people,
    sound_rows,
    truly_sound,
)
from tests.support.pages import blocks, problems_of

PAIR = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names="ab")
GAUSS = pdp.Gaussian(mean=[0, 0], covariance=[[1, 0.5], [0.5, 1]], bounds=(-2, 2))
HOUSE = pdp.GaussianGroup(size=4, correlation=(0, 0.4), bounds=(0, 100))


def stored(model, query, **options):
    """Return a calibration as JSON holds it; it states no total, so that ε can be changed alone."""
    described = json.loads(pdp.calibrate(model, query, epsilon=1.0, **options).to_json())
    del described["total_epsilon"]
    return described


def agree(seed: int, cases: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        found = calibration(rng)
        if found is None:
            continue
        described = json.loads(found.to_json())
        code, text = check(described)
        assert code != BROKEN, (text, described)
        if found.leakage.exact and found.leakage.lower > found.epsilon * (1 - 1e-7):
            assert check(shrunk(described))[0] != PROVED, described


def test_it_agrees_with_the_engines():
    agree(1, 30)


@pytest.mark.slow
def test_it_agrees_with_the_engines_on_more():
    agree(2, 120)


@pytest.mark.parametrize(
    ("model", "query"),
    [
        (PAIR, pdp.Sum()),
        (PAIR, pdp.Histogram()),
        (PAIR, [pdp.Sum(), pdp.Count(values={1}, over=["a"])]),
        (PAIR, pdp.Custom(function=max)),
        (pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=5), pdp.Sum()),
        (pdp.BinaryGroup(count_probabilities=[0.5, 0.1, 0.1, 0.3]), pdp.Mean()),
        (pdp.Unknown(size=3, domain=[0, 1, 2]), pdp.Sum()),
        (pdp.Blocks(models=[PAIR], counts=[3]), pdp.Sum()),
        (pdp.ModelSet(models=[PAIR, PAIR]), pdp.Mean()),
        (GAUSS, pdp.Sum()),
        (GAUSS, pdp.Sum(clamp=True)),
        (HOUSE, pdp.Mean(clamp=True)),
        (pdp.GaussianSeries(length=9, correlation=0.4, bounds=(0, 9)), pdp.Sum(clamp=True)),
    ],
    ids=str,
)
def test_proved_as_calibrated_and_refused_with_less_noise(model, query):
    described = stored(model, query)
    assert check(described)[0] == PROVED
    is_bound = model is GAUSS and query.clamp  # that nobody is known to reach
    assert check(shrunk(described))[0] == (UNDECIDED if is_bound else BROKEN)


@pytest.mark.parametrize("model", [GAUSS, HOUSE, pdp.Unknown(size=3, bounds=(0, 5))], ids=str)
def test_gaussian_noise(model):
    described = stored(model, pdp.Sum(clamp=model is HOUSE), delta=1e-6, noise="gaussian")
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] == BROKEN
    assert check(described | {"delta": 9e-7})[0] == BROKEN
    assert check(described | {"epsilon": 0.99})[0] == BROKEN


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta"),
    [("0.236704380663", 1, 1e-6), ("0.124106149031", 0.5, 1e-6), ("0.181974807295", 1, 1e-9)],
)
def test_the_excess_of_gaussian_noise_against_reference_values(mu, epsilon, delta):
    found = checker.excess(checker.Fraction(mu) ** 2, checker.Fraction(epsilon))
    assert float(found) == pytest.approx(delta, rel=1e-8)
    assert float(found) == pytest.approx(by_erfc(float(mu), epsilon), rel=1e-9)


def by_erfc(mu, epsilon):
    """Return δ by the error function of the standard library."""
    high, low = (math.erfc((epsilon / mu + sign * mu / 2) / 2**0.5) / 2 for sign in (-1, 1))
    return high - math.exp(epsilon) * low


HOSTILE = {
    "a later version": lambda d: d.update(version=3),
    "a later model": lambda d: d["model"].update(version=3),
    "private": lambda d: d["model"].update(provenance="private"),
    "a digest": lambda d: d["model"].update(digest="00"),
    "nobody is admitted": lambda d: d.update(adversaries={"at_least": 2, "at_most": 1}),
    "more than everyone is known": lambda d: d["adversaries"].update(at_least=7),
    "a named adversary beside": lambda d: d["adversaries"].update(target="a"),
    "names that repeat": lambda d: d["model"].update(names=["a", "a"]),
    "values that repeat": lambda d: d["model"].update(domains=[[0, 1], [1, True]]),
    "no values": lambda d: d["model"].update(domains=[[], [0, 1]]),
    "another shape": lambda d: d["model"].update(probabilities=[0.4, 0.1, 0.1, 0.4]),
    "negative": lambda d: d["model"].update(probabilities=[[0.6, -0.1], [0.1, 0.4]]),
    "not a number": lambda d: d["model"].update(probabilities=[[math.nan, 0.1], [0.1, 0.4]]),
    "half a law": lambda d: d["model"].update(probabilities=[[0.2, 0.05], [0.05, 0.2]]),
    "scale true": lambda d: d.update(scale=True),
    "scale negative": lambda d: d.update(scale=-9.0),
    "scale infinite": lambda d: d.update(scale=math.inf),
    "epsilon infinite": lambda d: d.update(epsilon=math.inf),
    "epsilon huge": lambda d: d.update(epsilon=1e300),
    "scales for one query": lambda d: d.update(scale=[9.0]),
    "no queries": lambda d: d.update(query=[], scale=[], noise=[]),
    "an unknown field of a query": lambda d: d["query"].update(persistence=0.1),
    "an unknown query": lambda d: d.update(query={"type": "Median", "over": None}),
    "a tuple twice": lambda d: d.update(query={"type": "Mean", "over": ["a", "a"], "clamp": False}),
    "rows zero": lambda d: d.update(rows=0),
    "another noise": lambda d: d.update(noise="Cauchy"),
    "discrete noise on fractions": lambda d: d["model"].update(domains=[[0, 0.5]] * 2),
    "an endless model": lambda d: d["model"].update(length=None),
    "names as text": lambda d: d["model"].update(names="ab"),
    "a query over text": lambda d: d["query"].update(over="ab"),
    "a kind": lambda d: d["model"].update(type="LoewnerBall"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_damaged_or_unknown_is_never_decided(what):
    described = stored(PAIR, pdp.Sum())
    HOSTILE[what](described)
    assert check(described)[0] == UNDECIDED


def test_a_sound_calibration_inside_an_unsound_one_proves_nothing():
    sound = stored(PAIR, pdp.Sum())
    assert check(shrunk(sound) | {"calibration": sound})[0] == BROKEN
    assert check({"type": "Release", "calibration": sound})[0] == PROVED


def test_what_a_certificate_says_of_itself_proves_nothing():
    described = stored(PAIR, pdp.Sum(), certificate=True)
    assert described["certificate"] == {}
    assert check(described | {"certificate": {"proved": True}})[0] == PROVED
    assert check(shrunk(described) | {"certificate": {"proved": True}})[0] == BROKEN


def test_a_file_that_states_less_than_is_learned_does_not_follow():
    described = stored(PAIR, pdp.Sum())
    code, text = check(described | {"leakage": {"value": 0.9}})
    assert code == BROKEN
    assert "somebody learns" in text
    code, text = check(described | {"leakage": {"value": 1.1}})
    assert code == BROKEN
    assert "does not follow" in text


def test_a_large_covariance_is_proved_by_its_certificate_alone():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(14, 28))
    model = pdp.Gaussian(mean=[0] * 14, covariance=root @ root.T, bounds=(0, 1))
    described = stored(model, pdp.Sum(), certificate=True)
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] == BROKEN
    trees = described["certificate"].pop("branches")
    assert check(described)[0] == UNDECIDED
    target = next(key for key, tree in trees.items() if tree != 0)
    code, text = check(described | {"certificate": {"branches": trees | {target: 0}}})
    assert code == BROKEN
    assert "does not follow" in text
    for tree in ([99, 0, 0], [int(target), 0, 0], [0, 0], "0", 1, {}, [[], 0, 0], [None, 0, 0]):
        broken = {"branches": trees | {target: tree}}
        assert check(described | {"certificate": broken})[0] != PROVED, tree
    for broken in ([], 7, "branches", {"branches": 3}, {"branches": [0] * 14}):
        assert check(described | {"certificate": broken})[0] == UNDECIDED


def test_long_chains_are_decided_as_their_tables_are(monkeypatch):
    rng, decided = np.random.default_rng(6), 0
    for _ in range(60):
        states, length = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        kernel = rng.dirichlet([2] * states, size=states)
        model = pdp.MarkovChain(transition=kernel, length=length, states=list(range(states)))
        described = stored(PAIR, pdp.Sum())
        who = [{"at_least": 0, "at_most": most} for most in (0, None)][rng.integers(2)]
        described |= {"model": model.to_dict(), "adversaries": who, "noise": "Laplace"}
        described |= {"scale": float(rng.uniform(0.8, 2.5)), "leakage": None}
        truth = check(described)[0]
        monkeypatch.setattr(checker, "MOST_CELLS", 0)
        found = check(described)[0]
        monkeypatch.undo()
        assert found in (truth, UNDECIDED), described
        decided += found != UNDECIDED
    assert decided >= 15


def asked_about(model, query, fewest, most):
    """Return a stored question with ε = 1 about any model; its scale is still to be chosen."""
    return stored(PAIR, pdp.Sum()) | {
        "model": json.loads(json.dumps(model.to_dict())),
        "query": query,
        "adversaries": {"at_least": fewest, "at_most": most},
        "noise": "Laplace",
        "leakage": None,
    }


def weighted(weights):
    """Return a weighted sum as it is stored."""
    return {"type": "Linear", "by": "position", "weights": weights, "clamp": False}


def any_orders(rng, size):
    """Return a random order of all others for every target, as a certificate holds it."""
    everyone = set(range(size))
    return {str(i): rng.permutation(sorted(everyone - {i})).tolist() for i in everyone}


def random_table(rng, sizes, *, zeros=0.0):
    """Return a table of these sizes, some cells of it impossible."""
    cells = rng.gamma(1.0, size=sizes) * (rng.random(sizes) >= zeros)
    cells.flat[0] += 0.1
    domains = [list(range(size)) for size in sizes]
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)


def asked_of(model, weights):
    """Return a stored calibration of a weighted sum that states no leakage."""
    return stored(model, pdp.Linear(weights=weights.tolist())) | {"leakage": None}


@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("sizes", [(2, 2, 2, 2, 2), (3, 2, 3, 2), (2, 4, 3)])
def test_cells_are_passed_over_only_where_nobody_learns_more_than_the_limit(
    monkeypatch, sizes, zeros
):
    # Whenever the checker passes over cells, it is compared with all whom that covers.
    rng, covered, is_below = np.random.default_rng(sum(sizes)), [], checker.is_below

    def watched(limit, masses, densities=()):
        below = is_below(limit, masses, densities)
        if below and len(masses[0]) > 1:
            covered.append((limit, np.array(masses, dtype=float), np.array(densities, dtype=float)))
        return below

    monkeypatch.setattr(checker, "is_below", watched)
    for _ in range(4):
        model = random_table(rng, sizes, zeros=zeros)
        described = asked_of(model, rng.choice([1, 2, -1], len(sizes)))
        assert check(described)[0] == PROVED
    assert len(covered) > 30
    for place in rng.permutation(len(covered))[:150]:
        limit, masses, densities = covered[place]
        shares = rng.random((60, 1))
        parts = rng.random((60, masses.shape[1])) < shares  # any cells, so any knowledge
        mass, density = parts @ masses.T, parts @ densities.T
        for given in (d[m > 0] / m[m > 0] for d, m in zip(density, mass, strict=True)):
            assert len(given) < 2 or given.max() / given.min() <= limit


def test_a_bound_that_is_no_number_covers_nobody():
    odds, near = [[10**290, 1], [1, 10**290]], [10**250, 10**40]
    densities = [[a * b for a, b in zip(row, near, strict=True)] for row in odds]
    assert not checker.is_below(1e300, odds, densities)  # infinity over infinity
    assert not checker.is_below(5.0, [[1, 0], [1, 1]], [[1, 0], [1, 1]])
    assert checker.is_below(5.0, [[1, 0, 0]], [[9, 0, 0]])  # one secret alone is possible


@pytest.mark.parametrize("sizes", [(2,) * 6, (3, 3, 3, 2), (4, 3, 3)])
def test_tables_are_decided_alike_with_and_without_bounds_and_in_any_order(monkeypatch, sizes):
    rng = np.random.default_rng(20)
    for zeros in (0.0, 0.0, 0.1):
        model = random_table(rng, sizes, zeros=zeros)
        described = asked_of(model, rng.choice([1, 1, 2, -1], len(sizes)))
        for one in (described, shrunk(described), shrunk(described, 1.1), shrunk(described, 0.9)):
            code = check(one)[0]
            assert code == (PROVED if one["scale"] >= described["scale"] else BROKEN)
            orders = any_orders(rng, len(sizes))
            assert check(one | {"certificate": {"orders": orders}})[0] == code
            monkeypatch.setattr(checker, "is_below", lambda *_: False)
            assert check(one)[0] == code
            monkeypatch.undo()


def against_brute_force(seed, cases):
    """Let ε be what brute force finds, a little more and a little less."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        sizes = [(2,) * 5, (3, 2, 2, 2), (2, 4, 3), (5, 3), (2, 2, 3, 2)][rng.integers(5)]
        model = random_table(rng, sizes, zeros=rng.choice([0, 0, 0.2]))
        cells = list(itertools.product(*model.domains))
        table = dict(zip(cells, rng.integers(0, 5, len(cells)).tolist(), strict=True))
        fewest = int(rng.integers(len(sizes))) if rng.random() < 0.4 else 0
        most = int(rng.integers(fewest, len(sizes)))
        scale = float(rng.uniform(1, 8))
        leakage, _ = brute_force.worst_leakage(
            model.probabilities, model.domains, table.__getitem__, scale,
            lambda _, known, least=fewest, most=most: least <= len(known) <= most,
        )  # fmt: skip
        query = {"type": "Custom", "over": None, "table": [[[*x], y] for x, y in table.items()]}
        described = asked_about(model, query, fewest, most) | {"scale": scale}
        assert check(described | {"epsilon": leakage * (1 + 1e-9)})[0] == PROVED, described
        assert check(described | {"epsilon": leakage * (1 - 1e-9)})[0] == BROKEN, described


def test_any_function_of_a_table_is_decided_as_brute_force_does():
    against_brute_force(30, 30)


@pytest.mark.slow
def test_any_function_of_more_tables_is_decided_as_brute_force_does():
    against_brute_force(31, 600)


def test_where_everybody_learns_the_same_decimals_decide():
    # The tuples are independent: who knows what makes no difference, and no float tells the
    # quotients from the limit.
    one = np.array([0.3, 0.7])
    cells = np.einsum("a,b,c,d,e->abcde", *[one] * 5)
    model = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 5)
    described = stored(model, pdp.Sum())
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] == BROKEN
    assert check(shrunk(described, 1 - 1e-11) | {"leakage": None})[0] == BROKEN


def wheeze(years):
    """Return a table of children who wheeze more or less often, in every year alike."""
    often, share = np.array([0.05, 0.3, 0.8]), np.array([0.6, 0.3, 0.1])
    cells = share
    for year in range(years):
        chance = np.clip(often * (1 + year / 50), 0, 1)
        law = np.stack([1 - chance, chance], axis=1).reshape(3, *[1] * year, 2)
        cells = cells[..., np.newaxis] * law
    return pdp.JointTable(probabilities=cells.sum(axis=0), domains=[[0, 1]] * years)


def with_orders_of_a_table(years):
    """Check a table that is large enough for a certificate, and what else is made of that."""
    described = stored(wheeze(years), pdp.Sum(), certificate=True)
    orders = described["certificate"]["orders"]
    assert sorted(orders) == sorted(map(str, range(years)))
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] == BROKEN
    for order in ([], [0] * (years - 1), list(range(years)), [-1] * (years - 1)):
        code, text = check(described | {"certificate": {"orders": orders | {"3": order}}})
        assert code == BROKEN, order
        assert "must name all others once" in text
    for order in (7, "abc", [None] * 12, {"0": 1}, [0.5] * 12):
        wrong = {"orders": orders | {"0": order}}
        assert check(described | {"certificate": wrong})[0] != PROVED, order


def test_a_table_of_more_cells_than_others_are_written_out_as(monkeypatch):
    monkeypatch.setattr(checker, "MOST_CELLS", 2**4)
    monkeypatch.setattr(certificate, "_TRIED_CELLS", 2**4)
    with_orders_of_a_table(6)
    assert check(stored(wheeze(7), pdp.Sum()))[0] == UNDECIDED


@pytest.mark.slow
def test_a_table_of_thirteen_columns():
    with_orders_of_a_table(13)


def chains(rng):
    """Return a stored question about a random chain, some of its steps and starts impossible."""
    states, length = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    steps = rng.dirichlet([0.5] * states, size=states) * (rng.random((states, states)) > 0.3)
    steps += 1e-3 * np.eye(states)
    first = rng.dirichlet([1] * states) * (rng.random(states) > 0.3) + 1e-300
    return pdp.MarkovChain(
        transition=steps / steps.sum(axis=1, keepdims=True),
        initial=first / first.sum(),
        length=length,
        states=list(range(states)),
    ), rng.choice([0, 1, 1, 2, -1], size=length).tolist()


def groups(rng):
    """Return a stored question about a random group, some of its counts impossible."""
    values, size = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    laws = rng.dirichlet([0.3] * math.comb(size + values - 1, size))
    laws = laws * (rng.random(len(laws)) > 0.2) + 1e-300
    return pdp.CategoryGroup(
        size=size, categories=list(range(values)), count_probabilities=laws / laws.sum()
    ), [1] * size


@pytest.mark.parametrize("family", [chains, groups])
def test_windows_and_counts_decide_as_the_table_does(monkeypatch, family):
    rng, decided = np.random.default_rng(11), 0
    for _ in range(60):
        model, weights = family(rng)
        fewest = int(rng.integers(len(weights))) if rng.random() < 0.3 else 0
        most = [None, fewest, len(weights) - 1][rng.integers(3)]
        described = asked_about(model, weighted(weights), fewest, most)
        scales = np.geomspace(0.2, 20, 8)
        broken = [s for s in scales if check(described | {"scale": float(s)})[0] == BROKEN]
        for scale in [*broken[-1:], *scales[len(broken) :][:1]]:  # about where it changes
            described["scale"] = float(scale)
            truth = check(described)[0]
            monkeypatch.setattr(checker, "MOST_CELLS", 0)
            found = check(described)[0]
            monkeypatch.undo()
            hidden = most is not None and most < len(weights) - 1  # blurs what windows see
            assert found == truth or (found == UNDECIDED and hidden), described
            decided += found != UNDECIDED
    assert decided >= 80


def test_a_radius_is_paid_for_and_never_believed(monkeypatch):
    rng, proved = np.random.default_rng(12), 0
    for _ in range(60):
        model, weights = chains(rng)
        described = asked_about(model, weighted(weights), 0, [None, 0][rng.integers(2)])
        described["scale"] = float(rng.uniform(0.5, 12))
        truth = check(described)[0]
        monkeypatch.setattr(checker, "MOST_CELLS", 0)
        for radius in (1, 2, 3, 99, 0, -1, True, 1.5, "1", [1], {}, 10**400):
            found = check(described | {"certificate": {"radius": radius}})[0]
            assert found in (truth, UNDECIDED), (radius, described)
            proved += found == PROVED
        monkeypatch.undo()
    assert proved > 100


def test_a_cut_window_leaks_more_than_what_is_seen_of_it(monkeypatch):
    # The chain hardly forgets: whoever stops at the neighbours sees little of what the sum tells.
    model = pdp.MarkovChain(transition=[[0.95, 0.05], [0.9, 0.1]], length=13, states=[5, 0])
    weights = pdp.Linear(weights=[1, -1] * 6 + [1])
    described = stored(model, weights, certificate=True)
    assert check(described)[0] == PROVED
    assert check(described | {"certificate": {"radius": 1}})[0] == UNDECIDED
    monkeypatch.setattr(checker, "cross_ratio", lambda *_: checker.ONE)  # the penalty left out
    assert check(shrunk(described, 0.7) | {"certificate": {"radius": 1}})[0] != PROVED


@pytest.mark.parametrize(
    ("model", "adversaries"),
    [
        (pdp.BinaryGroup(count_probabilities=[1 / 61] * 61), pdp.Adversaries.all()),
        (pdp.BinaryGroup(count_probabilities=[1 / 61] * 61), pdp.Adversaries.weakest()),
        (pdp.CategoryGroup(size=9, categories=[0, 1, 5], count_probabilities=[1 / 55] * 55),
         pdp.Adversaries.knowing(at_least=2)),
        (pdp.MarkovChain(transition=[[0.1, 0.9], [0.7, 0.3]], length=300),
         pdp.Adversaries.weakest()),
        pytest.param(pdp.MarkovChain(transition=[[0.1, 0.9], [0.7, 0.3]], length=100),
                     pdp.Adversaries.weakest(), marks=pytest.mark.slow),
        pytest.param(pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=100),
                     pdp.Adversaries.knowing(at_most=1), marks=pytest.mark.slow),
        pytest.param(
            pdp.MarkovChain(transition=[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]],
                            length=30, states=[0, 1, 2]),
            pdp.Adversaries.all(), marks=pytest.mark.slow),
    ],
    ids=["binary", "binary, nobody known", "categories", "long", "alternating", "order", "states"],
)  # fmt: skip
def test_one_answer_far_past_a_table(model, adversaries):
    described = stored(model, pdp.Sum(), adversaries=adversaries, certificate=True)
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] != PROVED
    assert check(shrunk(described, 0.9))[0] != PROVED


def grid(size, rng):
    """Return a square of tuples, each weakly coupled with its neighbours."""
    places = [(i, j) for i in range(size) for j in range(size)]
    pairs = [(a, b) for a in places for b in places if a < b and math.dist(a, b) == 1]
    factors = [((str(a), str(b)), np.exp(rng.normal(scale=0.2, size=(2, 2)))) for a, b in pairs]
    return pdp.Network(factors=factors, domains={str(place): [0, 1] for place in places})


def test_elimination_never_proves_what_the_table_breaks(monkeypatch):
    rng, proved = np.random.default_rng(9), 0
    described = stored(PAIR, pdp.Sum())
    for _ in range(60):
        described["model"] = network(rng).to_dict()
        described |= {"scale": float(rng.uniform(1, 4)), "noise": "Laplace", "leakage": None}
        truth = check(described)[0]
        monkeypatch.setattr(checker, "MOST_CELLS", 0)
        found = check(described)[0]
        monkeypatch.undo()
        assert found != PROVED or truth == PROVED, described
        proved += found == PROVED
    assert proved > 5


@pytest.mark.parametrize(
    ("model", "query"),
    [
        (pdp.MarkovChain(transition=[[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]], length=20,
                         states=["a", "b", "c"]), pdp.Histogram()),
        (grid(5, np.random.default_rng(0)), pdp.Sum()),
    ],
    ids=["histogram", "grid"],
)  # fmt: skip
def test_elimination_proves_what_the_engine_bounds_so(model, query):
    described = stored(model, query, certificate=True)
    assert check(described)[0] == PROVED
    assert check(shrunk(described, 0.99))[0] != PROVED


def test_an_order_is_followed_and_a_wrong_one_refused():
    steps = [((str(t), str(t + 1)), [[1.3, 1.0], [1.0, 1.3]]) for t in range(15)]
    model = pdp.Network(factors=steps, domains={str(t): [0, 1] for t in range(16)})
    described = shrunk(stored(model, pdp.Sum()), 1.2) | {"leakage": None}
    assert check(described)[0] == PROVED
    worse = {"orders": {"5": [k for k in range(15, -1, -1) if k != 5]}}
    assert check(described | {"certificate": worse})[0] in (PROVED, UNDECIDED)
    for order in ([], [0] * 15, list(range(16)), [*range(1, 5), *range(6, 16), 99], [-1] * 15):
        code, text = check(described | {"certificate": {"orders": {"5": order}}})
        assert code == BROKEN, order
        assert "must name all others once" in text
    for order in (7, "abc", [None] * 15, [[0]] * 15, {"0": 1}, [1e400] * 15):
        assert check(described | {"certificate": {"orders": {"5": order}}})[0] != PROVED, order
    for orders in ([], 3, "x"):
        assert check(described | {"certificate": {"orders": orders}})[0] != BROKEN, orders


def test_several_answers_with_too_many_outputs_are_proved_by_plans_alone():
    rng = np.random.default_rng(3)
    cells = rng.dirichlet([1] * 27).reshape(3, 3, 3)
    model = pdp.JointTable(probabilities=cells, domains=[[0, 1, 2]] * 3)
    queries = [pdp.Linear(weights=rng.normal(size=3)) for _ in range(4)]
    described = stored(model, queries, certificate=True)
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] == UNDECIDED  # a bound that nobody is known to reach
    plans = described["certificate"].pop("plans")
    assert check(described)[0] == UNDECIDED
    place = next(place for place, plan in enumerate(plans) if plan)
    for plan in ([[0, 0, "1"]], [[0, 0]], [[-1, 0, 1]], [[0, 99, 1]], [[0.0, 0, 1]], 7, "abc",
                 [[0, 0, True]], [None], {"0": 1}, [[0, 0, math.inf]]):  # fmt: skip
        broken = {"plans": [*plans[:place], plan, *plans[place + 1 :]]}
        assert check(described | {"certificate": broken})[0] == UNDECIDED, plan
    for broken in ([], plans[::-1], plans[:place], 7, "plans", {"0": plans}, None):
        assert check(described | {"certificate": {"plans": broken}})[0] == UNDECIDED


@pytest.fixture
def plans_alone(monkeypatch):
    """Let nothing but plans decide about whoever does not know everyone else."""

    def undecided(_):
        raise checker.Undecided("not this way.")

    for family in (checker.Finite, checker.Group, checker.Chain):
        for way in family.ways[1:]:
            monkeypatch.setattr(family, way, undecided)
    monkeypatch.setattr(transport_plans, "_is_checked_without", lambda _: False)


def test_plans_for_more_cells_than_can_be_written_out_prove_nothing(monkeypatch):
    def written_out(_):
        raise AssertionError("2^60 cells")

    monkeypatch.setattr(checker.Finite, "answers", written_out)
    chain = pdp.MarkovChain(transition=[[0.6, 0.4], [0.4, 0.6]], length=60)
    described = stored(chain, pdp.Histogram(), certificate=True)
    assert "plans" not in described["certificate"]
    described["certificate"]["plans"] = []
    assert check(described)[0] == PROVED  # by windows: yes and no are one number
    assert check(shrunk(described, 0.9))[0] == BROKEN


@pytest.mark.usefixtures("plans_alone")
@pytest.mark.parametrize("query", [[pdp.Sum()] * 3, pdp.Histogram()], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        pdp.MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=4),
        pdp.BinaryGroup(count_probabilities=[0.3, 0.1, 0.2, 0.1, 0.3]),
        pdp.Network(
            factors=[(("a", "b"), [[2, 1], [1, 3]]), (("b", "c"), [[1, 4], [2, 1]])],
            domains={name: [0, 1] for name in "abc"},
        ),
    ],
    ids=str,
)
def test_plans_about_whatever_can_be_written_out(model, query):
    described = stored(model, query, certificate=True)
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] != PROVED


def test_no_plan_pays_less_than_somebody_learns():
    rng = np.random.default_rng(4)
    for _ in range(20):
        laws = rng.gamma(0.5, size=(2, 3)) * (rng.random((2, 3)) > 0.2)
        laws[:, 0] += 0.1
        answers = rng.normal(scale=2, size=(2, 3, 2))  # in units of the noise
        outputs = np.array(list(itertools.product(*answers.reshape(-1, 2).T)))
        apart = np.abs(outputs[:, np.newaxis, np.newaxis] - answers).sum(axis=-1)
        densities = (laws * np.exp(-apart)).sum(axis=-1) / laws.sum(axis=-1)
        exact = (densities[:, 0] / densities[:, 1]).max()

        held = [[tuple(map(checker.Fraction, answer)) for answer in own] for own in answers]
        p, q = (
            {answer: int(mass * 2**80) for answer, mass in zip(own, law, strict=True) if mass}
            for own, law in zip(held, laws, strict=True)
        )
        for _ in range(20):
            masses = rng.gamma(0.3, size=(len(p), len(q))) - 0.1
            plan = [[k, m, float(x)] for (k, m), x in np.ndenumerate(masses) if rng.random() < 0.8]
            assert float(checker.most_paid(p, q, plan)) >= exact * (1 - 1e-12)


def test_influences_alone_prove_nothing():
    pairs = {("a", "b"): 1.0, ("b", "c"): 2.0}
    model = pdp.Network.from_influences(pairs, {name: [0, 1] for name in "abc"})
    described = stored(model, pdp.Sum()) | {"scale": 1.1, "leakage": None}
    assert check(described)[0] == UNDECIDED


@pytest.mark.parametrize("domain", [None, [0, 1]])
def test_values_on_an_interval_are_not_counted(domain):
    interval = pdp.Unknown(size=3, bounds=(0, 5))
    counted = interval if domain is None else pdp.Unknown(size=1, domain=domain)
    described = stored(pdp.Blocks(models=[counted, interval]), pdp.Sum())
    described["query"] = {"type": "Count", "over": None, "values": [3]}
    assert check(described)[0] == UNDECIDED


CHAIN = pdp.MarkovChain(transition=[[0.7, 0.3], [0.3, 0.7]], length=30)
INTERVALS = pdp.Unknown(size=2, bounds=(0, 5))
STEPS = pdp.MarkovTree(
    domains=[[0, 1]] * 2, parents=[None, 0], tables=[[0.4, 0.6], [[0.5, 0.5], [0.2, 0.8]]]
)
VALUES = {"type": "Sum", "over": None, "clamp": True}
NOT_THE_SAME = {
    "whole noise on an interval": (INTERVALS, {"noise": "discrete Laplace"}, {}),
    "a weight beside a sum": (PAIR, {"query": VALUES | {"weights": [0, 0]}}, {}),
    "rows of a tree that are no laws": (STEPS, {}, {"tables": [[0.4, 0.6], [[5, 5], [2, 8]]]}),
    "a table on intervals": (PAIR, {}, {"domains": None, "bounds": [0, 1]}),
    "Gaussian values from a list": (GAUSS, {}, {"bounds": None, "domains": [[0, 1], [1, 0]]}),
    "no variance": (HOUSE, {}, {"variance": 0}),
    "no such correlation": (HOUSE, {}, {"correlation": -0.9}),
    "a question that is a charge": (PAIR, {"query": {"type": "charge"}}, {}),
    "states one by one": (CHAIN, {}, {"states": None, "domains": [[0, 1]] * 29 + [[0, 1, 2]]}),
    "no covariance": (
        GAUSS,
        {"adversaries": {"at_least": 0, "at_most": 0}},
        {"covariance": [[1, 1.5], [1.5, 1]]},
    ),
    "private members": (pdp.ModelSet(models=[PAIR] * 2), {}, {"provenance": "private"}),
}


@pytest.mark.parametrize("what", NOT_THE_SAME)
def test_what_says_something_else_is_never_proved(what):
    model, changes, inner = NOT_THE_SAME[what]
    described = stored(model, pdp.Sum(clamp=model in (GAUSS, HOUSE))) | {"leakage": None}
    assert check(described)[0] == PROVED
    inner = {key: value for key, value in (described["model"] | inner).items() if value is not None}
    assert check(described | changes | {"model": inner, "scale": 999.0})[0] == UNDECIDED


@pytest.mark.parametrize(
    ("mu", "epsilon"), [("0.0205", 1), ("0.02005", 1), ("17.5", 699), ("21.25", 699), ("1e-9", 5)]
)
def test_no_excess_is_lost_far_out(mu, epsilon):
    square = checker.Fraction(mu) ** 2
    found = checker.excess(square, checker.Fraction(epsilon))
    assert 0 < found < checker.Decimal("1e-100")
    tail = {"21.25": 1.8e-110, "17.5": 2.4e-214}.get(mu)  # by 1,500 digits
    assert tail is None or float(found) == pytest.approx(tail, rel=0.05)


def test_gaussian_noise_that_tells_next_to_nothing_of_one_tuple():
    model = pdp.Gaussian(mean=[0, 0], covariance=np.eye(2), bounds=(-2, 2))
    query = pdp.Linear(weights=[1, 0.001])
    described = stored(model, query, delta=1e-6, noise="gaussian")
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] == BROKEN


def test_two_answers_that_no_tuple_moves_together_are_not_called_broken():
    queries = [pdp.Sum(), pdp.Linear(weights=[1, -1])]
    described = stored(pdp.Unknown(size=2, domain=[0, 1]), queries)
    described |= {"scale": [1.0, 1.0], "epsilon": 4.0, "leakage": {"value": 2.0}}
    assert check(described)[0] != BROKEN  # both together move by 2 at most, one by one by 4


@pytest.mark.parametrize("columns", [9, 12])
def test_independent_columns_are_decided_at_once(columns):
    cells = np.ones(())
    for share in np.linspace(0.2, 0.7, columns):
        cells = np.multiply.outer(cells, [1 - share, share])
    model = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * columns)
    described = stored(model, pdp.Sum())
    assert check(described)[0] == PROVED
    assert check(shrunk(described))[0] == BROKEN


@pytest.mark.parametrize("delta", ["abc", [1], {"a": 1}, 10**400, True])
def test_a_delta_beside_laplace_noise_means_nothing(delta):
    assert check(stored(PAIR, pdp.Sum()) | {"delta": delta})[0] == PROVED


@pytest.mark.parametrize("first", [0, 1])
def test_a_function_beside_another_question_is_not_decided(first, tmp_path):
    queries = [pdp.Sum(), pdp.Custom(function=lambda pair: 1000 * (pair[0] != pair[1]))]
    described = stored(PAIR, [queries[first], queries[1 - first]])
    assert check(described)[0] == UNDECIDED
    assert check(described | {"scale": [3.0, 3.0], "leakage": None})[0] == UNDECIDED
    described, _ = ledger_of(tmp_path, PAIR, queries)
    assert check(described)[0] == UNDECIDED


def test_steps_against_each_other_are_not_alike():
    # Clamped, at a bound of their ranges, such steps move the answer by more than one of them.
    model = pdp.GaussianSeries(length=5, correlation=-0.5, bounds=(0, 1))
    described = stored(model, pdp.Sum(clamp=True)) | {"leakage": None}
    assert check(described)[0] == PROVED
    assert check(described | {"scale": 1.5 + 1e-9})[0] == PROVED
    assert check(described | {"scale": 1.5 - 1e-9})[0] == BROKEN


@pytest.mark.parametrize("kind", ["GaussianGroup", "GaussianSeries"])
def test_members_with_ranges_of_their_own_are_not_alike(kind):
    # The answer moves by as much for each member, but one of them has half the range.
    model = {"schema": "pdp-calibrate/1", "type": kind, "names": [0, 1], "provenance": "assumed"}
    model |= {"bounds": [[0, 2], [0, 1]], "correlation": 0.5, "variance": 1.0}
    described = asked_about(GAUSS, weighted([1, 2]), 0, None) | {"model": model, "scale": 3.0}
    assert check(described)[0] == BROKEN
    same = {key: model[key] for key in ("schema", "names", "provenance", "bounds")}
    same |= {"type": "Gaussian", "covariance": [[1, 0.5], [0.5, 1]]}
    assert check(described | {"model": same})[0] == BROKEN
    assert check(described | {"scale": 4.1})[0] == PROVED


def test_one_file_is_asked_about_at_a_time(tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(stored(PAIR, pdp.Sum())))
    bad.write_text("{}")
    for files, code in (([good], PROVED), ([bad, good], UNDECIDED), ([], UNDECIDED)):
        found = subprocess.run(  # noqa: S603 - of our own file
            [sys.executable, checker.__file__, *files], check=False, capture_output=True,
            env={"PYTHONIOENCODING": "cp1252"},
        )  # fmt: skip
        assert (found.returncode, found.stderr) == (code, b"")


def test_a_large_group_and_a_long_series_need_little_memory():
    for model in (
        pdp.GaussianGroup(size=20_000, correlation=(0, 0.4), bounds=(0, 1)),
        pdp.GaussianSeries(length=2_000, correlation=0.5, bounds=(0, 1)),
    ):
        assert check(stored(model, pdp.Sum(clamp=True)))[0] == PROVED


def test_clamping_only_some_answers_is_not_decided():
    described = stored(GAUSS, [pdp.Sum(), pdp.Mean()])
    described["query"][0]["clamp"] = True
    assert check(described)[0] == UNDECIDED


def test_clamped_values_that_move_against_the_target_early():
    # A tenth of the range of x1 moves x2 over all of its own, which weighs five times as much.
    model = pdp.Gaussian(mean=[0, 0], covariance=[[1, -10], [-10, 101]], bounds=(0, 1))
    described = stored(model, pdp.Linear(weights=[1, 5], clamp=True))
    assert check(described)[0] == PROVED
    assert check(described | {"scale": 4.5})[0] == UNDECIDED


def test_kernels_too_small_for_any_decimal_stop_the_check():
    described = stored(PAIR, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    described["model"]["domains"] = [[0, 10**200], [0, 10**200]]
    assert check(described)[0] != PROVED


@pytest.fixture
def few_tuples(monkeypatch):
    """Let a covariance of four tuples need a certificate."""
    monkeypatch.setattr(checker, "MOST_GAUSSIAN", 1)
    monkeypatch.setattr(certificate, "TRIED", 1)
    monkeypatch.setattr(certificate, "_LEFT_TO_TRY", 0)


@pytest.fixture
def no_tables(monkeypatch):
    """Let a chain of four tuples be decided by windows."""
    monkeypatch.setattr(checker, "MOST_CELLS", 0)


@pytest.mark.parametrize(
    ("changed", "limits", "least"),
    [
        (changed_files(3, 400), (), 50),
        (changed_trees(7, 200), ["few_tuples"], 20),
        (changed_radii(9, 300), ["no_tables"], 60),
        (changed_orders(11, 200), (), 40),
        (changed_plans(5, 400), ["plans_alone"], 60),
        pytest.param(changed_files(4, 3000), (), 300, marks=pytest.mark.slow),
        pytest.param(changed_trees(8, 1000), ["few_tuples"], 60, marks=pytest.mark.slow),
        pytest.param(changed_orders(12, 2000), (), 400, marks=pytest.mark.slow),
        pytest.param(changed_plans(6, 4000), ["plans_alone"], 600, marks=pytest.mark.slow),
    ],
    ids=[
        "files",
        "trees",
        "radii",
        "orders",
        "plans",
        "more files",
        "more trees",
        "more orders",
        "more plans",
    ],
)
def test_a_changed_file_or_certificate_is_proved_only_if_it_is_sound(
    request, changed, limits, least
):
    for fixture in limits:
        request.getfixturevalue(fixture)
    assert confirmed(changed) > least


@pytest.mark.parametrize(
    ("cases", "least"), [(100, 20), pytest.param(1_500, 300, marks=pytest.mark.slow)]
)
def test_changed_questions_about_rows_and_people_are_proved_only_if_sound(tmp_path, cases, least):
    assert confirmed_by(changed_rows(1, cases), sound_rows) > least
    assert confirmed_by(changed_people(2, cases, tmp_path), sound_people) > least


@pytest.mark.parametrize(
    "cases", [pytest.param(15, id="few"), pytest.param(150, id="many", marks=pytest.mark.slow)]
)
def test_random_ledgers_are_never_called_broken(tmp_path, cases):
    rng, decided = np.random.default_rng(3), 0
    for number in range(cases):
        _, described = random_ledger(rng, tmp_path / f"{number}.json")
        code, text = check(described)
        assert code != BROKEN, (text, described)
        decided += code == PROVED
    assert decided >= cases * 0.9


def test_files_are_proved_or_broken_as_brute_force_finds():
    rng = np.random.default_rng(6)
    for _ in range(60):
        described = json.loads(calibration(rng, simple=True).to_json())
        described = shrunk(described, float(rng.uniform(0.6, 1.2))) | {"leakage": None}
        code, _ = check(described)
        assert code != PROVED or truly_sound(described), described
        assert code != BROKEN or not truly_sound(described, 1e-9), described


def test_the_file_alone_decides_anywhere(tmp_path):
    alone = tmp_path / "check.py"
    shutil.copy(Path(checker.__file__), alone)
    sound = stored(PAIR, pdp.Sum())
    for described, code in [
        (sound, PROVED), (shrunk(sound), BROKEN), ({"type": "Calibration"}, UNDECIDED),
        ([], UNDECIDED),
    ]:  # fmt: skip
        (tmp_path / "file.json").write_text(json.dumps(described))
        found = subprocess.run(
            [sys.executable, "-I", "-S", "check.py", "file.json"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert found.returncode == code, found
        assert not found.stderr


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1e999", '"x"', "NaN"])
def test_what_is_no_json_object_is_never_decided(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    assert checker.check_file(tmp_path / "file.json")[0] == UNDECIDED
    assert checker.check_file(tmp_path / "nowhere.json")[0] == UNDECIDED


def test_the_command(tmp_path):
    file = tmp_path / "cal.json"
    sound = stored(PAIR, pdp.Sum())
    file.write_text(json.dumps(sound))
    found = CliRunner().invoke(app, ["check", str(file), "--json"])
    assert (found.exit_code, json.loads(found.stdout)["proved"]) == (0, True)
    file.write_text(json.dumps(shrunk(sound)))
    found = CliRunner().invoke(app, ["check", str(file)])
    assert found.exit_code == 1
    assert "somebody learns" in found.stdout


def test_the_page_explains_every_function_of_the_file():
    source = Path(checker.__file__).read_text()
    page = (Path(__file__).parents[1] / "docs/concepts/checker.md").read_text()
    tree = ast.parse(source)
    defined = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    answers = {"Undecided", "Broken", "__init__", "__post_init__"}
    assert [n.name for n in defined if f"`{n.name}`" not in page and n.name not in answers] == []
    assert "fmt:" not in source  # laid out by ruff, as all other files
    named = set(re.findall(r"^([A-Z])  \(", source, flags=re.MULTILINE))
    used = set(re.findall(r"[(, ]([A-Z])(?=[,)])", source[source.index("import ") :]))
    assert named == used


def test_a_report_says_independently_checked_only_when_it_was(tmp_path):
    page, words = tmp_path / "page.html", "independently checked"
    cal = pdp.calibrate(PAIR, pdp.Sum(), epsilon=1.0)
    assert words not in pdp.report(cal, page).read_text()
    assert words in pdp.report(cal, page, checked=True, overwrite=True).read_text()
    named = pdp.Adversaries.exactly("a", known=[])
    page.unlink()
    with pytest.raises(pdp.PdpError, match="independent check does not prove it"):
        pdp.report(
            pdp.calibrate(PAIR, pdp.Sum(), epsilon=1.0, adversaries=named), page, checked=True
        )
    with pytest.raises(pdp.PdpError, match="does not prove it"):
        pdp.report(cal.with_noise(0.9), page, checked=True)
    assert not page.exists()


CROSS = pdp.Linear(weights=[1, -1])


def ledger_of(folder, model, queries, *, charge=0.0, **options):
    """Release about all zeros, and return the file as it is stored, with what is spent."""
    ledger = pdp.Ledger(model, epsilon=3.0, path=folder / "ledger.json", **options)
    for query in queries:
        ledger.release(query, dict.fromkeys(model.names, 0), epsilon=0.2)
    if charge:
        ledger.charge(charge)
    return json.loads((folder / "ledger.json").read_text()), ledger.spent


def budgeted(described, epsilon):
    """Return a ledger with another budget, which states that nothing was spent so far."""
    entries = [
        {k: 0.0 if k in ("spent", "epsilon") else v for k, v in entry.items()}
        for entry in described["entries"]
    ]
    entries[-1]["spent"] = epsilon
    return described | {"epsilon": epsilon, "entries": entries}


@pytest.mark.parametrize(
    ("model", "queries", "charge", "tight"),
    [
        (PAIR, [pdp.Sum(), pdp.Count(values={1}, over=["a"]), pdp.Sum()], 0.0, True),
        (CHAIN, [pdp.Sum(), pdp.Sum()], 0.0, True),
        (CHAIN, [pdp.Sum()], 0.1, False),
        (GAUSS, [pdp.Sum(), CROSS], 0.0, True),
        (pdp.Unknown(size=3, domain=[0, 1]), [pdp.Sum()], 0.1, False),
    ],
)
def test_a_ledger_is_proved_as_one_list_of_queries(tmp_path, model, queries, charge, tight):
    described, spent = ledger_of(tmp_path, model, queries, charge=charge)
    assert check(budgeted(described, spent * (1 + 1e-9)))[0] == PROVED
    refused = BROKEN if tight else UNDECIDED  # nobody is known to reach a budget's bound
    assert check(budgeted(described, spent * (1 - 1e-5)))[0] == refused
    assert check(described | {"epsilon": spent * (1 - 1e-5)})[0] == BROKEN  # it states more itself


def test_a_ledger_with_an_anchor_and_one_of_very_many_answers_are_proved(tmp_path, monkeypatch):
    described, _ = ledger_of(tmp_path, PAIR, [pdp.Sum()], anchor=tmp_path / "anchor")
    assert "anchor" in described
    assert check(described)[0] == PROVED
    monkeypatch.setattr("pdp_calibrate.composition.joint.KEPT_SPENDING", 1)
    (tmp_path / "many").mkdir()
    described, _ = ledger_of(tmp_path / "many", CHAIN, [pdp.Sum(), pdp.Mean()])
    assert "total" in described
    assert check(described)[0] == PROVED
    assert check(described | {"epsilon": 0.1})[0] == BROKEN
    budgets = described["total"]["budgets"]
    for changed in ({"budgets": [0.0] * 30}, {"budgets": [*budgets[:-1], budgets[-1] * 0.999]}):
        code, words = check(described | {"total": described["total"] | changed})
        assert code == BROKEN
        assert "its sum is below its entries" in words
    assert check(described | {"total": described["total"] | {"entries": 9}})[0] == UNDECIDED
    more = described["total"] | {"budgets": [2 * budget for budget in budgets]}
    assert check(described | {"total": more})[0] == PROVED


def test_a_ledger_follows_the_orders_of_its_certificate(tmp_path, monkeypatch):
    monkeypatch.setattr(certificate, "_TRIED_CELLS", 4)
    square = grid(5, np.random.default_rng(0))
    for number, model in enumerate([square, wheeze(4)]):
        path, nobody = tmp_path / f"{number}.json", dict.fromkeys(model.names, 0)
        ledger = pdp.Ledger(model, epsilon=1.0, path=path)
        ledger.release(pdp.Sum(), nobody, epsilon=None)  # all of the budget
        ledger.new_draw("second")
        ledger.release(pdp.Sum(), nobody, epsilon=0.3)
        proof = ledger.certified()
        orders = proof["certificate"]["orders"]
        assert check(proof)[0] == PROVED
        assert check(proof | {"epsilon": 0.99})[0] != PROVED
        code, text = check(proof | {"certificate": {"orders": {key: [0] for key in orders}}})
        assert code == BROKEN
        assert "must name all others once" in text
        copy = tmp_path / "copy.json"
        copy.write_text(json.dumps(proof))
        with pytest.raises(pdp.LedgerError, match="checksum"):
            pdp.Ledger.open(copy)


def test_large_outputs_alone_decide_only_about_steps_that_favour_order(monkeypatch):
    # The smallest state leads to the largest: outputs in between tell more than large ones do.
    steps = [[0.015, 0.077, 0.908], [0.843, 0.118, 0.039], [0.721, 0.071, 0.208]]
    model = pdp.MarkovChain(transition=steps, length=5, states=[0, 1, 3])
    truth = pdp.leakage(model, pdp.Sum(), scale=4.0).lower
    described = asked_about(model, weighted([1] * 5), 0, None) | {"scale": 4.0}
    for most in (checker.MOST_CELLS, 0):  # as a table, and by windows
        monkeypatch.setattr(checker, "MOST_CELLS", most)
        assert check(described | {"epsilon": truth * (1 - 1e-9)})[0] == BROKEN
        assert check(described | {"epsilon": truth * (1 + 1e-9)})[0] == PROVED


def test_one_bound_for_all_who_are_left_is_never_below_any_of_them():
    rng, proved = np.random.default_rng(14), 0
    for _ in range(60):
        noise = rng.normal(scale=rng.choice([0.01, 0.05, 0.3]), size=(3, 3))
        covariance = np.eye(3) + (noise + noise.T) / 4
        model = pdp.Gaussian(mean=[0] * 3, covariance=covariance, bounds=(0, 1))
        weights = rng.choice([1.0, -1.0, 2.0], 3)
        truth = pdp.leakage(model, pdp.Linear(weights=weights.tolist()), scale=1.0).lower
        described = asked_about(model, weighted(weights.tolist()), 0, None) | {"scale": 1.0}
        described["certificate"] = {"branches": dict.fromkeys("012", 0)}
        assert check(described | {"epsilon": truth * (1 - 1e-9)})[0] == BROKEN
        proved += check(described | {"epsilon": truth * 1.05})[0] == PROVED
    assert proved > 10  # so near the truth that a bound 5 % smaller would have been seen


@pytest.mark.parametrize("columns", [3, 6])
def test_a_hair_more_than_the_limit_is_not_covered(columns):
    # Who knows all but one learns exactly 1, at large outputs; no float tells it from the limit.
    cells = np.ones(())
    for share in np.linspace(0.2, 0.7, columns):
        cells = np.multiply.outer(cells, [1 - share, share])
    model = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * columns)
    described = asked_about(model, weighted([1] * columns), 0, columns - 2) | {"scale": 1.0}
    assert check(described | {"epsilon": 1 + 2e-13})[0] == PROVED
    assert check(described | {"epsilon": 1 - 2e-13})[0] == BROKEN


def test_blocks_are_checked_against_all_whom_their_own_tuples_admit():
    # Two tuples decide the third: who knows one learns of two from any of the others.
    cells = np.full((2, 2, 2), 1e-3)
    for x, y in itertools.product((0, 1), repeat=2):
        cells[x, y, x ^ y] += 0.249
    parity = pdp.JointTable(probabilities=cells / cells.sum(), domains=[[0, 1]] * 3)
    blocks = pdp.Blocks(models=[parity, parity])
    for most, code in ((0, PROVED), (1, UNDECIDED)):
        described = asked_about(blocks, weighted([1] * 6), 0, most) | {"scale": 1.6}
        assert check(described)[0] == code


def test_what_a_ledger_released_about_other_draws_says_nothing_about_this_one(tmp_path):
    described, spent = ledger_of(tmp_path, PAIR, [pdp.Sum()] * 2)
    described = budgeted(described, spent * 0.6)
    assert check(described)[0] == BROKEN
    described["entries"][1]["draw"] = "second"
    assert check(described)[0] == UNDECIDED  # no such draw is listed
    described["draws"].append("second")
    described["entries"][0]["spent"] = spent * 0.6
    assert check(described)[0] == PROVED


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(delta=1e-6),
        lambda state: state.update(version=99),
        lambda state: state.update(entries=[]),
        lambda state: state["entries"][0].update(noise="gaussian"),
        lambda state: state["entries"][0].update(step=1),
        lambda state: state["entries"][0].update(kind="gift"),
        lambda state: state["entries"][0].update(kind="charge", dp_epsilon=0.0),
        lambda state: state["entries"][0].update(dp_epsilon=50.0),
        lambda state: state["entries"][0].update(model={}),
        lambda state: state.update(queries=[]),
        lambda state: state["entries"][0]["scales"].append(1e9),
        lambda state: state["entries"][0].update(scales=[]),
        lambda state: state["entries"][0].update(rows=2),
        lambda state: state["entries"][0].update(queries="Sum"),
        lambda state: state["entries"][-1].update(dp_epsilon=-0.2),
        lambda state: state["entries"][-1].update(dp_epsilon=None),
        lambda state: state["model"].update(provenance="private"),
        lambda state: state.update(type="PeopleLedger"),
    ],
)
def test_a_ledger_that_says_something_else_is_not_decided(tmp_path, change):
    described, _ = ledger_of(tmp_path, PAIR, [pdp.Sum(), pdp.Mean()], charge=0.1)
    assert check(described)[0] == PROVED
    change(described)
    assert check(described)[0] == UNDECIDED


def test_charges_are_never_left_out(tmp_path):
    described, spent = ledger_of(tmp_path, PAIR, [pdp.Sum()], charge=0.4)
    without = check(described | {"entries": described["entries"][:1], "epsilon": 0.21})
    assert without[0] == PROVED
    assert check(budgeted(described, 0.5))[0] == UNDECIDED  # everyone's own price alone is more
    assert check(described | {"epsilon": 3.0})[0] == PROVED
    assert spent > 0.5


WHO = {
    "all": (pdp.Adversaries.all(), "", ", whichever other entries they know exactly"),
    "weakest": (pdp.Adversaries.weakest(), " who knows no other entries at all", ""),
    "strongest": (pdp.Adversaries.strongest(), " who knows all other entries exactly", ""),
    "least": (
        pdp.Adversaries.knowing(at_least=1), " who knows at least 1 other entries exactly", ""
    ),
    "most": (pdp.Adversaries.knowing(at_most=1), " who knows at most 1 other entries exactly", ""),
    "exactly": (
        pdp.Adversaries.knowing(at_least=1, at_most=1), " who knows 1 other entries exactly", ""
    ),
}  # fmt: skip
THREE = pdp.JointTable(
    probabilities=[[[0.3, 0.05], [0.05, 0.1]], [[0.1, 0.05], [0.05, 0.3]]], domains=[[0, 1]] * 3
)


@pytest.mark.parametrize("who", WHO)
def test_the_sentence_names_the_adversaries(who, tmp_path):
    adversaries, before, after = WHO[who]
    found = pdp.calibrate(THREE, pdp.Sum(), epsilon=1.0, adversaries=adversaries)
    code, text = check(found.to_dict())
    assert code == PROVED
    assert text == f"Proved: nobody{before} learns more than ε = 1{after}."
    file, page = tmp_path / "cal.json", tmp_path / "page.html"
    file.write_text(found.to_json())
    shown = CliRunner().invoke(app, ["check", str(file), "--json"])
    assert json.loads(shown.stdout)["text"] == text
    assert text in pdp.report(found, page, checked=True).read_text()


def test_the_sentence_has_the_total_with_what_learning_the_model_cost(tmp_path):
    learned = PAIR.learned_with(5.0)
    found = pdp.calibrate(learned, pdp.Sum(), epsilon=1.0)
    code, text = check(found.to_dict())
    assert code == PROVED
    assert "learns more than ε = 6 in total, of which 5 from learning the model" in text
    assert text in pdp.report(found, tmp_path / "page.html", checked=True).read_text()
    described = found.to_dict()
    assert check(described | {"total_epsilon": 5.99})[0] == BROKEN
    assert check(described | {"estimation_epsilon": 0.1, "total_epsilon": 1.1})[0] == BROKEN
    nowhere = {k: v for k, v in described["model"].items() if k != "estimation_epsilon"}
    assert check(described | {"model": nowhere, "estimation_epsilon": None})[0] == UNDECIDED
    plain = pdp.JointTable(probabilities=PAIR.probabilities, domains=[[0, 1]] * 2)
    both = pdp.Blocks(models=[plain.learned_with(0.5), plain.learned_with(0.25)])
    assert "ε = 1.75 in total" in check(pdp.calibrate(both, pdp.Sum(), epsilon=1.0).to_dict())[1]
    noisy = HOUSE.learned_with(0.5)
    options = {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}
    described = pdp.calibrate(noisy, pdp.Sum(clamp=True), **options).to_dict()
    assert "ε = 1.5, δ = 1.64873e-06 in total" in check(described)[1]
    assert check(described | {"total_delta": 1e-6})[0] == BROKEN


def test_numbers_in_the_sentence_are_rounded_up():
    assert [checker.shown(x) for x in (0.1, 1.1190211, 1e-6, 1.64872127e-6, 2.0, 123456.5)] == [
        "0.1", "1.11903", "1e-06", "1.64873e-06", "2", "123457",
    ]  # fmt: skip


CONTRADICTIONS = {
    "a total below its parts": lambda d: d.update(total_epsilon=0.01),
    "no total at all": lambda d: d.update(total_epsilon=0),
    "more reached than stated": lambda d: d["leakage"].update(lower=99),
    "equal secrets": lambda d: d["leakage"]["witness"].update(secrets=[1, 1]),
    "no such secrets": lambda d: d["leakage"]["witness"].update(secrets=[0, 7]),
    "no such target": lambda d: d["leakage"]["witness"].update(target="z"),
    "a target who knows themselves": lambda d: d["leakage"]["witness"].update(known=[["a", 0]]),
    "another budget for learning": lambda d: d.update(estimation_epsilon=0.5),
    "a leakage above ε": lambda d: d["leakage"].update(value=1.5),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_what_contradicts_itself_is_refuted(what):
    described = pdp.calibrate(PAIR, pdp.Sum(), epsilon=1.0).to_dict()
    assert check(described)[0] == PROVED
    described = json.loads(json.dumps(described))
    CONTRADICTIONS[what](described)
    code, text = check(described)
    assert code == BROKEN
    assert "does not follow" in text


def test_what_contradicts_itself_about_gaussian_noise_is_refuted():
    described = stored(GAUSS, pdp.Sum(), delta=1e-6, noise="gaussian")
    assert check(described)[0] == PROVED
    assert check(described | {"rho": described["rho"] / 2})[0] == BROKEN
    assert check(described | {"leakage": described["leakage"] | {"mu": 1.0}})[0] == BROKEN
    assert check(described | {"total_delta": 1e-9})[0] == BROKEN


def test_doubled_keys_and_fractions_of_people_are_damage(tmp_path):
    file, text = tmp_path / "file.json", json.dumps(stored(PAIR, pdp.Sum()))
    file.write_text(text)
    assert checker.check_file(file)[0] == PROVED
    file.write_text('{"epsilon": 0.1, ' + text[1:])
    code, words = checker.check_file(file)
    assert code == UNDECIDED
    assert "names something twice" in words
    for most in (0.9, 1.0, True, "1", -1):
        described = stored(PAIR, pdp.Sum())
        described["adversaries"]["at_most"] = most
        assert check(described)[0] == UNDECIDED


ELSEWHERE = {
    "no end": pdp.calibrate(
        pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None),
        pdp.EachStep(pdp.Sum()), epsilon=1.0),
    "a ball": pdp.calibrate(pdp.LoewnerBall(center=GAUSS, radius=0.1), pdp.Sum(), epsilon=1.0),
    "one adversary": pdp.calibrate(
        PAIR, pdp.Sum(), epsilon=1.0, adversaries=pdp.Adversaries.exactly("a", known=["b"])),
    "persistence": pdp.calibrate(
        pdp.MixingChain(states=[0, 1], length=9, diameter=1.0), pdp.Sum(), epsilon=1.0),
    "Gaussian noise": pdp.calibrate(PAIR, pdp.Sum(), epsilon=1.0, delta=1e-6, noise="gaussian"),
}  # fmt: skip


@pytest.mark.parametrize("what", ELSEWHERE)
def test_what_is_not_covered_is_not_called_damaged(what):
    code, text = check(json.loads(ELSEWHERE[what].to_json()))
    assert code == UNDECIDED
    assert "not covered: " in text
    assert "damaged" not in text


def test_a_missing_file_is_a_missing_file(tmp_path):
    code, text = checker.check_file(tmp_path / "nowhere.json")
    assert code == UNDECIDED
    assert "there is no file" in text
    code, text = checker.check_file(tmp_path)
    assert code == UNDECIDED
    assert "cannot be read" in text
    (tmp_path / "text.json").write_text("[1,")
    assert "no JSON" in checker.check_file(tmp_path / "text.json")[1]
    (tmp_path / "large.json").write_text(" " * (checker.MOST_BYTES + 1))
    assert "10 MB" in checker.check_file(tmp_path / "large.json")[1]


@pytest.mark.parametrize("kind", ["JointTable", "GaussianGroup", "Blocks"])
def test_a_model_that_says_more_is_not_decided(kind):
    models = {
        "JointTable": PAIR,
        "GaussianGroup": HOUSE,
        "Blocks": pdp.Blocks(models=[PAIR], counts=[2]),
    }
    described = stored(models[kind], pdp.Sum(clamp=kind == "GaussianGroup"))
    assert check(described)[0] == PROVED
    described["model"]["sharpness"] = {"confidence": 0.95}
    code, text = check(described)
    assert (code, text) == (UNDECIDED, f"Cannot decide: not covered: sharpness of {kind}.")


def test_the_sentence_says_what_a_learned_model_covers():
    described = stored(PAIR, pdp.Sum())
    covering = {"kind": "covered", "confidence": 0.95, "over": "sampling"}
    described["model"]["coverage"] = covering
    assert check(described)[1].endswith(
        "exactly, if the set of models holds the truth, which it misses with probability 0.05."
    )
    described["model"]["coverage"] = {"kind": "point", "upper": {}}
    assert check(described)[1].endswith(
        "if the learned model is right, whose error nothing covers."
    )
    for wrong in (covering | {"confidence": 0}, {"kind": "certain"}, covering | {"more": 1}, 7):
        described["model"]["coverage"] = wrong
        assert check(described)[0] == UNDECIDED
    both = stored(pdp.Blocks(models=[THREE, THREE]), pdp.Sum())
    for one in both["model"]["models"]:
        one["coverage"] = dict(covering)
    assert "probability 0.1." in check(both)[1]


def test_what_the_readme_releases_is_decided(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    for block in blocks("README.md"):
        assert not problems_of(block, "README.md", names)
    made = [one for one in names.values() if isinstance(one, pdp.Release | pdp.Calibration)]
    assert len(made) >= 3
    for one in made:
        assert check(json.loads(one.to_json()))[0] == PROVED, one
    code, text = checker.check_file(tmp_path / "budget.json")
    assert code == PROVED
    assert "whichever other entries of its column" in text


QUESTIONS = [
    "mean(income)", "sum(income)", "count(sick=true)", "sum(income) --missing zero",
    "sum(income) --where sick=true", "mean(income) --where sick=true",
    "count(sick=true) --by city --domain city=Oslo,Voss",
    "mean(income) --correlation 0:0.4 --assume gaussian",
]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_the_command_line_releases_is_decided(question, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{n // 4},{300 + n % 400},{n % 7 == 0},{('Oslo', 'Voss')[n // 4 % 2]}" for n in range(80)
    ]
    Path("people.csv").write_text("\n".join(["household,income,sick,city", *rows]) + "\n")
    query, *more = question.split(" ")
    asked = ["release", "people.csv", "-q", query, "--epsilon", "1", "--groups", "household"]
    asked += [] if query.startswith("count") else ["--bounds", "income=0:1000"]
    found = CliRunner().invoke(app, [*asked, *more, "-o", "release.json"])
    assert found.exit_code == 0, found.output
    assert checker.check_file(Path("release.json"))[0] == PROVED
    held = json.loads(Path("release.json").read_text())
    assert check(held | {"calibration": shrunk(held["calibration"])})[0] != PROVED


def people_ledger(folder):
    """Release several answers about people, and return the ledger's file."""
    people = pd.DataFrame({"home": np.arange(80) // 4, "income": 300.0, "sick": True, "city": "a"})
    survey = pdp.People(
        people, groups="home", bounds={"income": (0, 1000)}, domains={"city": ["a", "b"]},
        epsilon=2.0, ledger=folder / "budget.json",
    )  # fmt: skip
    survey.mean("income", epsilon=0.4, correlation=(0, 0.4))
    survey.sum("income", epsilon=0.1, correlation=(0, 0.4))
    survey.count({"sick": True}, by="city", epsilon=0.3)
    survey.sum("income", where={"sick": True}, epsilon=0.2)
    return json.loads((folder / "budget.json").read_text())


def test_a_ledger_of_people_is_decided_column_by_column(tmp_path):
    described = people_ledger(tmp_path)
    assert check(described)[0] == PROVED
    spent = described["entries"][-1]["spent_by_column"]
    assert check(described | {"epsilon": max(spent.values())})[0] == PROVED
    assert check(described | {"epsilon": max(spent.values()) * (1 - 1e-9)})[0] == BROKEN
    for name in spent:  # what others cost, or what its own model allows, is more
        less = json.loads(json.dumps(described))
        for entry in less["entries"]:
            entry["spent_by_column"][name] *= 1 - 1e-5
        assert check(less)[0] == BROKEN, name


PEOPLE = {
    "a price too small": lambda d: d["entries"][2].update(price=0.1),
    "less noise": lambda d: d["entries"][1].update(scales=[9.0]),
    "a secret column called public": lambda d: d["entries"][2]["queries"][0].update(
        public=["sick"]
    ),
    "a question about no column": lambda d: d.update(columns=["income", "sick"]),
    "larger households": lambda d: d.update(sizes=[[4, 19], [9, 1]]),
    "a model of its column, for another": lambda d: d["entries"][2].update(column="income"),
    "what is spent becomes less": lambda d: d["entries"][3]["spent_by_column"].update(city=0.0),
    "a draw that is not listed": lambda d: d["entries"][0].update(draw="second"),
    "Gaussian noise": lambda d: d["entries"][0].update(noise="gaussian"),
    "a delta": lambda d: d.update(delta=1e-6),
    "another kind": lambda d: d["entries"][0].update(kind="charge"),
    "another question": lambda d: d["entries"][0]["queries"][0].update(type="Sum"),
    "no sizes": lambda d: d.update(sizes=[]),
    "a larger correlation": lambda d: d["models"]["income"]["models"][0].update(
        correlation=[0, 0.9]
    ),
}


@pytest.mark.parametrize("what", PEOPLE)
def test_a_ledger_of_people_that_says_something_else_is_not_proved(what, tmp_path):
    described = people_ledger(tmp_path)
    PEOPLE[what](described)
    assert check(described)[0] != PROVED


def test_a_release_about_larger_groups_than_its_model_is_refuted():
    people = pd.DataFrame({"home": np.arange(80) // 4, "income": 300.0})
    options = {"bounds": (0, 1000), "groups": "home", "correlation": (0, 0.4), "epsilon": 1.0}
    described = json.loads(people.pdp.sum("income", **options).to_json())
    assert check(described)[0] == PROVED
    assert check(described | {"sizes": [[4, 19], [5, 1]]})[0] == BROKEN


def test_a_certificate_belongs_to_one_block_or_member():
    rng = np.random.default_rng(0)
    roots = [rng.normal(size=(size, 2 * size)) for size in (14, 15)]
    large = [
        pdp.Gaussian(mean=[0] * len(root), covariance=root @ root.T, bounds=(0, 1))
        for root in roots
    ]
    described = stored(pdp.Blocks(models=large), pdp.Sum(), certificate=True)
    assert check(described)[0] == PROVED
    assert check(described | {"certificate": None})[0] == UNDECIDED
    first, second = described["certificate"]["models"]
    assert check(described | {"certificate": {"models": [second, first]}})[0] != PROVED
    assert check(described | {"certificate": {"models": [first]}})[0] == UNDECIDED
    several = pdp.ModelSet(models=[large[0], large[0]])
    described = stored(several, pdp.Sum(), certificate=True)
    assert check(described)[0] == PROVED


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize("size", range(1, 8))
def test_a_range_of_correlations_is_as_bad_as_its_worst_end(size, clamp):
    rng = np.random.default_rng(size)
    for _ in range(6):
        low, high = sorted(rng.uniform(-0.9, 0.9, 2).tolist())
        worst = max(
            pdp.leakage(
                pdp.GaussianSeries(length=size, correlation=phi, bounds=(0, 1)),
                pdp.Sum(clamp=clamp), scale=1.0,
            ).value
            for phi in (low, high, min(max(low, 0), high))
        )  # fmt: skip
        model = {"type": "GaussianSeries", "names": list(range(size)), "provenance": "assumed"}
        model |= {"correlation": [low, high], "bounds": [0, 1], "variance": None}
        described = asked_about(GAUSS, weighted([1] * size), 0, None) | {"model": model}
        described["query"]["clamp"] = clamp
        assert check(described | {"scale": worst * (1 + 1e-9)})[0] == PROVED, described
        assert check(described | {"scale": worst * (1 - 1e-9)})[0] == BROKEN, described


LARGE = {"10 MB of lists", "correlation, 1,000,000 steps", "covariance of 400, a certificate"}


@pytest.mark.parametrize("kind", [pdp.GaussianGroup, pdp.GaussianSeries])
def test_a_bound_that_leaves_noise_out_is_not_called_reached(kind):
    # Over a range, Gaussian noise is compared without what the unknown entries add as noise.
    size = {"size": 2} if kind is pdp.GaussianGroup else {"length": 2}
    model = kind(**size, correlation=0.36, bounds=(0, 10), variance=4.0)
    query = pdp.Linear(weights=[0.4, 0.2])
    described = stored(model, query, delta=1e-6, noise="gaussian")
    assert check(described)[0] == PROVED
    described["model"]["correlation"] = [0.05, 0.36]
    assert check(described)[0] == UNDECIDED
    assert check(shrunk(described, 1.5) | {"leakage": None})[0] == PROVED


@pytest.mark.parametrize("name", [one for one in HARD if one not in LARGE])
def test_work_is_counted_before_it_is_done(monkeypatch, name):
    """Count the lines of the checker that run: no more than a multiple of what it counts itself."""
    limit, seen = 3 * 10**5, 0
    described = HARD[name]()
    monkeypatch.setattr(checker, "MOST_STEPS", limit)

    def traced(_frame, event, _):
        nonlocal seen
        seen += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(lambda frame, *_: traced if frame.f_code.co_filename == checker.__file__ else None)
    try:
        check(described)
    finally:
        sys.settrace(before)
    assert seen <= 2 * limit + 3 * len(json.dumps(described))
