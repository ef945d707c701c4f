"""Random calibrations of the families that the stand-alone checker covers."""

import contextlib
import copy
import json
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model

Rng = np.random.Generator


def table(rng: Rng) -> Model:
    """Draw a joint table of two or three tuples, some cells of it impossible."""
    sizes = rng.integers(1, 4, rng.integers(2, 4))
    cells = rng.gamma(0.5, size=sizes) * (rng.random(sizes) > 0.2) + 0.0
    cells.flat[0] += 0.1
    values = [0.0, 1.0, 2.0, 3.5, -1.0]
    return pdp.JointTable(
        probabilities=cells / cells.sum(),
        domains=[rng.choice(values, size, replace=False).tolist() for size in sizes],
    )


def latent_table(rng: Rng, columns: int, values: int, signs: Any = 1) -> Model:
    """Draw columns that depend on one hidden trait: the more of it, the larger (or smaller)."""
    traits = np.linspace(-3, 3, 41)
    cells = np.exp(-(traits**2) / 2)
    slopes = np.broadcast_to(signs, columns) * 2 / values
    for column in range(columns):
        levels = np.arange(values) * (rng.normal(-1, 0.4) + slopes[column] * traits[:, np.newaxis])
        law = np.exp(levels) / np.exp(levels).sum(axis=1, keepdims=True)
        cells = cells[..., np.newaxis] * law.reshape(len(traits), *[1] * column, values)
    cells = cells.sum(axis=0)
    domains = [list(range(values))] * columns
    return pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)


def gaussian(rng: Rng) -> Model:
    """Draw a covariance of two to four tuples."""
    size = int(rng.integers(2, 5))
    root = rng.normal(size=(size, size + 1))
    return pdp.Gaussian(mean=[0] * size, covariance=root @ root.T, bounds=(-1, 2))


def chain(rng: Rng) -> Model:
    """Draw a short chain of two or three states."""
    states = int(rng.integers(2, 4))
    return pdp.MarkovChain(
        transition=rng.dirichlet([1] * states, size=states),
        length=int(rng.integers(2, 5)),
        states=list(range(states)),
    )


def long_chain(rng: Rng) -> Model:
    """Draw a chain that no table holds: its steps favour order, or two states alternate."""
    stay = np.sort(rng.uniform(0.05, 0.95, 2))[:: rng.choice([-1, 1])]
    return pdp.MarkovChain(
        transition=[[1 - stay[0], stay[0]], [1 - stay[1], stay[1]]],
        length=int(rng.integers(13, 40)),
    )


def longer_chain(rng: Rng) -> Model:
    """Draw a chain of three states that no table holds, in no order."""
    steps = rng.dirichlet([2] * 3, size=3) + 0.1
    return pdp.MarkovChain(
        transition=steps / steps.sum(axis=1, keepdims=True),
        length=int(rng.integers(8, 20)),
        states=[0, 1, 2],
    )


def larger_group(rng: Rng) -> Model:
    """Draw a group that no table holds."""
    if rng.random() < 0.5:
        size = int(rng.integers(13, 30))
        return pdp.BinaryGroup(count_probabilities=rng.dirichlet([0.5] * (size + 1)))
    laws = rng.dirichlet([0.5] * math.comb(10, 8))
    return pdp.CategoryGroup(size=8, categories=[0, 1, 5], count_probabilities=laws)


def tree(rng: Rng) -> Model:
    """Draw a tree of three tuples."""
    tables = [rng.dirichlet([1, 1]), *rng.dirichlet([1, 1], size=(2, 2))]
    return pdp.MarkovTree(
        domains=[[0, 1]] * 3, parents=[None, 0, int(rng.integers(2))], tables=tables
    )


def network(rng: Rng) -> Model:
    """Draw a ring of three tuples."""
    factors = [(pair, rng.gamma(1.0, size=(2, 2))) for pair in ("ab", "bc", "ca")]
    return pdp.Network(factors=factors, domains={name: [0, 1] for name in "abc"})


def group(rng: Rng) -> Model:
    """Draw an exchangeable group of two or three categories."""
    size = int(rng.integers(1, 5))
    if rng.random() < 0.5:
        return pdp.BinaryGroup(count_probabilities=rng.dirichlet([0.5] * (size + 1)))
    size = min(size, 3)
    laws = rng.dirichlet([0.5] * math.comb(size + 2, size))
    return pdp.CategoryGroup(size=size, categories=[0, 1, 5], count_probabilities=laws)


def household(rng: Rng) -> Model:
    """Draw members with a common correlation, or a range of it."""
    size = int(rng.integers(1, 6))
    low, high = np.sort(rng.uniform(-1 / (size + 1), 0.9, 2)).tolist()
    variance = None if rng.random() < 0.5 else 4.0
    stated = (low, high) if rng.random() < 0.5 else high
    return pdp.GaussianGroup(size=size, correlation=stated, bounds=(0, 10), variance=variance)


def series(rng: Rng) -> Model:
    """Draw steps along time."""
    variance = None if rng.random() < 0.5 else 4.0
    return pdp.GaussianSeries(
        length=int(rng.integers(1, 6)),
        correlation=float(rng.uniform(-0.5, 0.9)),
        bounds=(0, 10),
        variance=variance,
    )


def unknown(rng: Rng) -> Model:
    """Draw tuples of any dependence."""
    return pdp.Unknown(size=int(rng.integers(1, 5)), domain=[0, 1, 4])


def blocks(rng: Rng) -> Model:
    """Draw independent blocks, some of them copied."""
    return pdp.Blocks(models=[table(rng), group(rng)], counts=[2, 1])


def several(rng: Rng) -> Model:
    """Draw a set of two tables."""
    cells = rng.dirichlet([1] * 4, size=2).reshape(2, 2, 2)
    tables = [pdp.JointTable(probabilities=one, domains=[[0, 1]] * 2) for one in cells]
    return pdp.ModelSet(models=tables)


def question(rng: Rng) -> Any:
    """Ask a question about rows, with a filter or a breakdown, and return its calibration."""
    people = pd.DataFrame({
        "home": np.repeat(np.arange(4), rng.integers(1, 4, 4)),
    }).assign(load=1.0, sick=True, city="a")  # fmt: skip
    low = float(rng.choice([0, -3, 2]))
    more: list[dict[str, Any]] = [
        {"where": {"sick": True}},
        {"by": "city", "domains": {"city": ["a", "b", "c"]}},
        {"where": {"sick": True}, "public": ["sick"]},
        {"where": {"sick": True}, "public": ["sick"], "correlation": (0, 0.4)},
        {"where": {"sick": True}, "by": "city", "domains": {"city": ["a", "b"]}},
    ]
    asked = {"groups": "home", "epsilon": float(rng.choice([0.1, 1.0, 3.0]))}
    chosen = more[rng.integers(5)]
    kind = rng.choice(["sum", "mean", "count"])
    if kind == "count":
        chosen = {key: value for key, value in chosen.items() if key in ("by", "domains")}
        return people.pdp.count({"sick": True}, **asked, **chosen).calibration
    ask = getattr(people.pdp, kind)
    return ask("load", bounds=(low, low + 10), **asked, **chosen).calibration


FINITE = (table, chain, long_chain, tree, network, group, unknown, blocks, several)
FINITE += (longer_chain, larger_group)
REAL = (gaussian, household, series)
ASKED = (question,)


def calibration(rng: Rng, *, simple: bool = False) -> Any:
    """Draw a model, a query and adversaries, and calibrate; None where the library refuses.

    Simple: a table or a Gaussian with a query of numbers, whose truth brute force decides.
    """
    families: Any = (table, gaussian) if simple else FINITE + REAL + ASKED
    family = families[rng.integers(len(families))]
    if family is question:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return question(rng)
            except pdp.PdpError:
                return None
    model = family(rng)
    first = model.domains[0][0]
    weighted = pdp.Linear(weights=rng.normal(size=len(model.names)))
    queries: list[Any] = [pdp.Sum(), pdp.Mean(), weighted]
    if family in REAL:
        queries += [] if simple else [pdp.Sum(clamp=True)]
    else:
        queries += [pdp.Count(values={first}), *([] if simple else [pdp.Histogram()])]
    if family in (longer_chain, larger_group):  # with other questions the engines take minutes
        queries = [pdp.Sum(), pdp.Mean(), pdp.Count(values={first})]
    limited = [pdp.Adversaries.weakest(), pdp.Adversaries.strongest()]
    others = [*limited, pdp.Adversaries.knowing(at_most=1)]
    adversaries = others[rng.integers(3)] if rng.random() < 0.3 else pdp.Adversaries.all()
    noise: dict[str, Any] = {}
    if family in REAL and not simple and rng.random() < 0.3:
        noise = {"noise": "gaussian", "delta": 1e-6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pdp.calibrate(
                model,
                queries[rng.integers(len(queries))],
                epsilon=float(rng.choice([0.1, 1.0, 3.0])),
                adversaries=adversaries,
                time_limit=5,
                certificate=bool(rng.random() < 0.5),
                **noise,
            )
        except pdp.PdpError:
            return calibration(rng, simple=True) if simple else None


def shrunk(described: dict[str, Any], factor: float = 1 - 1e-5) -> dict[str, Any]:
    """Return a stored calibration with less noise."""
    twin = copy.deepcopy(described)
    scale = twin["scale"]
    twin["scale"] = [one * factor for one in scale] if isinstance(scale, list) else scale * factor
    return twin


def random_ledger(rng: Rng, path: Any) -> tuple[str, dict[str, Any]]:
    """Release a few answers about one model, or about people, and return the ledger's file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rng.random() < 0.5:
            kind = released_about_people(rng, path)
        else:
            kind = released_about_one_model(rng, path)
    return kind, json.loads(path.read_text())


def released_about_one_model(rng: Rng, path: Any) -> str:
    """Release a few answers about a random model into a ledger."""
    family = (table, chain, tree, network, group, unknown, gaussian)[rng.integers(7)]
    model = family(rng)
    learned = rng.random() < 0.3
    budget = pdp.Ledger(model.learned_with(0.5) if learned else model, epsilon=3.0, path=path)
    row = {name: domain[0] for name, domain in zip(model.names, model.domains, strict=True)}
    queries: list[Any] = [pdp.Sum(), pdp.Mean(), pdp.Linear(weights=rng.normal(size=len(row)))]
    for _ in range(int(rng.integers(1, 4))):
        with contextlib.suppress(pdp.PdpError):  # the answer may be the same for all data
            budget.release(queries[rng.integers(3)], row, epsilon=float(rng.choice([0.1, 0.3])))
    if family is not gaussian and (rng.random() < 0.3 or not budget.history):
        budget.charge(0.1)
    return f"{type(model).__name__}{', learned' if learned else ''}"


def released_about_people(rng: Rng, path: Any) -> str:
    """Release a few answers about random people into a ledger."""
    size = int(rng.integers(1, 5))
    people = pd.DataFrame({"home": np.arange(12 * size) // size})
    people = people.assign(load=1.0, rent=2.0, sick=True, city="a")
    survey = pdp.People(
        people, groups="home", bounds={"load": (-3, 7), "rent": (1, 9)},
        domains={"city": ["a", "b", "c"]}, epsilon=9.0, ledger=path,
        public=["city"] if rng.random() < 0.3 else [],
    )  # fmt: skip
    stated: dict[str, Any] = {"correlation": (0, 0.4)} if rng.random() < 0.7 else {}
    ways = [
        lambda e: survey.sum("load", epsilon=e, **stated),
        lambda e: survey.mean("rent", epsilon=e),
        lambda e: survey.mean("load", by="city", epsilon=e),
        lambda e: survey.count({"sick": True}, epsilon=e),
        lambda e: survey.count({"sick": True}, by="city", epsilon=e),
        lambda e: survey.sum("rent", where={"sick": True}, by="city", epsilon=e),
        lambda e: survey.mean("rent", where={"sick": True}, epsilon=e),
    ]
    for _ in range(int(rng.integers(1, 5))):
        ways[rng.integers(len(ways))](float(rng.choice([0.1, 0.5])))
    return "people"
