"""Changed files and certificates: whatever of them the stand-alone checker proves must be sound."""

import contextlib
import copy
import json
import math
import random
import warnings
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.calibration.transport_plans import plans_for
from pdp_calibrate.check import PROVED, check
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import PdpError
from tests.oracles import brute_force
from tests.oracles.adversaries import every_adversary
from tests.support.check_cases import calibration, question, released_about_people, shrunk

FAR = 10**3


def _numbers(node, path=()):
    """Yield the path of every number, text and yes or no of a JSON object."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        if isinstance(value, dict | list):
            yield from _numbers(value, (*path, key))
        yield (*path, key)


def mutated(described, chance: random.Random):
    """Change one place of a stored calibration, rather of its certificate if it has one."""
    twin = copy.deepcopy(described)
    paths = [p for p in _numbers(twin) if p[0] not in ("leakage", "type", "schema")]
    inner = [p for p in paths if p[0] == "certificate" and len(p) > 2]
    path = chance.choice(inner if inner and chance.random() < 0.7 else paths)
    node = twin
    for key in path[:-1]:
        node = node[key]
    value = node[path[-1]]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and chance.random() < 0.7:
        factors = (0, -1, 0.5, 0.9999, 1.0001, 2, FAR)
        node[path[-1]] = value * chance.choice(factors) if value else chance.choice(factors)
    elif chance.random() < 0.3 and len(node) > 1:
        if isinstance(node, dict):
            del node[path[-1]]
        else:
            node[path[-1]] = node[chance.randrange(len(node))]
    else:
        node[path[-1]] = chance.choice([None, True, 0, 1, -1.0, 2, [], {}, "a", [0, 1], value])
    return twin


def truly_sound(d, margin: float = -1e-9) -> bool:
    """Decide by brute force about a stored calibration of a table or a Gaussian.

    With a margin, whether the promise holds with that much to spare, relatively.
    """
    model, query = d["model"], d["query"]
    names, size = [*map(str, model["names"])], len(model["names"])
    fewest = size - 1 if d["adversaries"]["at_least"] is None else d["adversaries"]["at_least"]
    most = size - 1 if d["adversaries"]["at_most"] is None else d["adversaries"]["at_most"]
    over = names if query.get("over") is None else [*map(str, query["over"])]
    weights = np.array([float(name in over) for name in names])
    if query["type"] == "Mean":
        weights /= len(over) * d["rows"]
    if query["type"] == "Linear":
        by_name = query["by"] == "name"
        given = {str(n): w for n, w in query["weights"]} if by_name else dict(
            zip(names, query["weights"], strict=True)
        )  # fmt: skip
        weights = np.array([given.get(name, 0.0) for name in names], dtype=float)
    if model["type"] == "Gaussian":
        covariance = np.array(model["covariance"], dtype=float)
        bounds = np.array(model["bounds"], dtype=float)
        widths = np.diff(np.broadcast_to(bounds, (size, 2)), axis=1).ravel()
        worst = 0.0
        for target, known in every_adversary(size, lambda _, k: fewest <= len(k) <= most):
            joint = sorted({*known, target})
            slopes = np.linalg.solve(covariance[np.ix_(joint, joint)], covariance[joint] @ weights)
            worst = max(worst, abs(slopes[joint.index(target)]) * widths[target] / d["scale"])
        return worst <= d["epsilon"] * (1 - margin)
    counted = query.get("values")
    domains = [
        [str(v) if isinstance(v, list) else v for v in values] for values in model["domains"]
    ]

    def answer(x):
        if query["type"] == "Count":
            return float(sum(v in counted for v, w in zip(x, weights, strict=True) if w))
        return math.fsum(w * v for v, w in zip(x, weights, strict=True))

    worst, _ = brute_force.worst_leakage(
        np.array(model["probabilities"], dtype=float), domains, answer, d["scale"],
        lambda _, k: fewest <= len(k) <= most,
    )  # fmt: skip
    return bool(worst <= d["epsilon"] * (1 - margin))


def learned_in(model) -> float:
    """Return what learning a stored model of one part cost."""
    return model.get("estimation_epsilon") or 0.0


def confirmed(twins) -> int:
    """Return how many of some files are proved; brute force must find each of them sound."""
    proved = 0
    for twin in twins:
        if check(twin)[0] == PROVED:
            model = twin["model"]["type"]
            assert truly_sound(_as_table(twin) if model == "MarkovChain" else twin), twin
            total = twin.get("total_epsilon")
            assert total is None or total >= twin["epsilon"] + learned_in(twin["model"]), twin
            proved += 1
    return proved


def changed_files(seed: int, cases: int):
    """Yield simple calibrations, changed in one place or two."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)  # noqa: S311
    for case in range(cases):
        if case % 20 == 0:
            described = json.loads(calibration(rng, simple=True).to_json())
        twin = mutated(described, chance)
        if chance.random() < 0.5:
            twin = mutated(twin, chance)
        yield twin


def changed_radii(seed: int, cases: int):
    """Yield chains with any radius, changed, and with more or less noise."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)  # noqa: S311
    for case in range(cases):
        if case % 20 == 0:
            model = pdp.MarkovChain(transition=rng.dirichlet([2, 2], size=2), length=4)
            found = pdp.calibrate(model, pdp.Linear(weights=rng.choice([-1, 1, 2], 4)), epsilon=1.0)
            described = json.loads(found.to_json()) | {"leakage": None}
        described["certificate"] = {"radius": chance.choice([1, 2, 3, 4, 0, -1, 2.0, True, "1"])}
        twin = shrunk(described, chance.choice([1, 1, chance.uniform(0.5, 2.5)]))
        for _ in range(chance.randrange(3)):
            twin = mutated(twin, chance)
        yield twin


def changed_plans(seed: int, cases: int):
    """Yield tables with spoiled plans, and noise about where plans begin to prove."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)  # noqa: S311
    for case in range(cases):
        if case % 20 == 0:
            cells = rng.gamma(0.5, size=(2, 2, 3)) * (rng.random((2, 2, 3)) > 0.2)
            cells.flat[0] += 0.1
            domains = [[0, 1], [0, 1], [0, 1, 2]]
            model = pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)
            query = pdp.Linear(weights=rng.choice([-1, 1, 2], 3))
            found = pdp.calibrate(model, query, epsilon=1.0).with_noise(1.4)
            written = plans_for(found)
            described = json.loads(found.to_json()) | {"leakage": None}
        twin = shrunk(described, chance.choice([1, chance.uniform(0.6, 1.0)]))
        plans = written if chance.random() < 0.3 else _spoiled(written, chance)
        twin = json.loads(json.dumps(twin | {"certificate": {"plans": plans}}))
        for _ in range(chance.randrange(3)):
            twin = mutated(twin, chance)
        yield twin


def changed_orders(seed: int, cases: int):
    """Yield tables with any order of deciding about the others, changed, and with less noise."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)  # noqa: S311
    for case in range(cases):
        if case % 20 == 0:
            shape = [(2, 2, 2, 2), (2, 3, 2), (3, 2, 2, 2)][case // 20 % 3]
            cells = rng.gamma(1.0, size=shape) * (rng.random(shape) > 0.1 * (case // 20 % 2))
            cells.flat[0] += 0.1
            domains = [list(range(size)) for size in shape]
            model = pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)
            found = pdp.calibrate(model, pdp.Linear(weights=rng.choice([-1, 1, 2], len(shape))),
                                  epsilon=1.0)  # fmt: skip
            described = json.loads(found.to_json()) | {"leakage": None}
        orders = {}
        for target in range(len(shape)):
            others = [k for k in range(len(shape)) if k != target]
            orders[str(target)] = chance.sample(others, len(others))
        described["certificate"] = {"orders": orders}
        twin = shrunk(described, chance.choice([1, 1, chance.uniform(0.7, 1.2)]))
        for _ in range(chance.randrange(3)):
            twin = mutated(twin, chance)
        yield twin


def _spoiled(plans, chance: random.Random):
    """Change all plans of a certificate in the same way."""
    ways = [
        lambda k, m, mass: [[k, m, mass * 0.5]],
        lambda k, m, mass: [[k, m, mass], [k, 1 - min(m, 1), -mass * 0.5]],
        lambda k, m, mass: [[m, k, mass]],
        lambda k, m, _: [[k, m, chance.random()]],
        lambda k, m, mass: [[k, m, mass]] * chance.randrange(2),
        lambda k, m, mass: [[k, m, mass * (1 + chance.gauss(0, 1e-3))]],
    ]
    way = chance.choice(ways)
    twins = [plan and [part for entry in plan for part in way(*entry)] for plan in plans]
    return twins if chance.random() < 0.9 else twins[::-1]


def _as_table(described):
    """Write a stored chain out as a table."""
    chain = described["model"]
    steps = np.array(chain["transition"], dtype=float)
    steps /= steps.sum(axis=1, keepdims=True)
    first = chain["initial"]
    if first is None:
        values, vectors = np.linalg.eig(steps.T)
        first = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    cells = np.array(first, dtype=float) / np.sum(first)
    for _ in chain["names"][1:]:
        cells = cells[..., np.newaxis] * steps
    table = {"type": "JointTable", "names": chain["names"], "probabilities": cells.tolist()}
    return described | {"model": table | {"domains": [chain["states"]] * cells.ndim}}


def changed_trees(seed: int, cases: int):
    """Yield covariances of so few tuples that brute force decides, their trees changed."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)  # noqa: S311
    for case in range(cases):
        if case % 20 == 0:
            root = rng.normal(size=(4, 5))
            model = pdp.Gaussian(mean=[0] * 4, covariance=root @ root.T, bounds=(0, 1))
            query = pdp.Linear(weights=rng.normal(size=4))
            found = pdp.calibrate(model, query, epsilon=1.0, certificate=True)
            described = json.loads(found.to_json())
            described["leakage"] = None
        twin = described if chance.random() < 0.5 else shrunk(described, chance.uniform(0.8, 1.1))
        for _ in range(chance.randrange(1, 4)):
            twin = mutated(twin, chance)
        yield twin


def changed_rows(seed: int, cases: int):
    """Yield calibrations of questions about rows, changed in one place or two."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)  # noqa: S311
    described = None
    for case in range(cases):
        while described is None or case % 20 == 0:
            found = question(rng) if rng.random() < 0.8 else None
            if found is not None and isinstance(found.queries[0], RowQuery):
                described = json.loads(found.to_json())
                break
        twin = mutated(described, chance)
        if chance.random() < 0.5:
            twin = mutated(twin, chance)
        yield twin


def changed_people(seed: int, cases: int, folder: Path):
    """Yield ledgers about people, changed in one place or two."""
    rng, chance = np.random.default_rng(seed), random.Random(seed)  # noqa: S311
    for case in range(cases):
        if case % 20 == 0:
            path = folder / f"{case}.json"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                released_about_people(rng, path)
            described = json.loads(path.read_text())
            last = max(described["entries"][-1]["spent_by_column"].values())
            described["epsilon"] = last * (1 + 1e-9)  # so that little more is too much
        twin = mutated(described, chance)
        if chance.random() < 0.5:
            twin = mutated(twin, chance)
        yield twin


def leakage_of_rows(model: dict, queries: list, scales: list) -> float:
    """Return how far questions about rows move, by the library's own words for one row."""
    blocks = [Model.from_dict(one) for one in model.get("models", [model])]
    whole = Model.from_dict(model)
    asked = [Query.from_dict(query) for query in queries]
    for query in asked:
        assert isinstance(query, RowQuery)
        query.contributions(whole, rows=1)  # refuses what the model does not cover
    moved = sum(query.reach / scale for query, scale in zip(asked, scales, strict=True))
    worst = 0.0
    for block in blocks:
        ends = getattr(block, "correlation", 1.0)
        high = max(0.0, ends[1] if isinstance(ends, tuple) else ends)
        worst = max(worst, moved * (1 + (len(block.names) - 1) * high))
    return worst


def sound_rows(d) -> bool:
    """Decide about a stored calibration of questions about rows."""
    queries = d["query"] if isinstance(d["query"], list) else [d["query"]]
    scales = d["scale"] if isinstance(d["query"], list) else [d["scale"]]
    return leakage_of_rows(d["model"], queries, scales) <= d["epsilon"] * (1 + 1e-9)


def sound_people(d) -> bool:
    """Decide about a ledger of people: for each column its own, and the prices of all others."""
    largest = max(size for size, _ in d["sizes"])
    prices = []
    for entry in d["entries"]:
        asked = [Query.from_dict(query) for query in entry["queries"]]
        counted = [min(largest, query.most or largest) for query in asked]
        both = zip(asked, counted, entry["scales"], strict=True)
        prices.append(sum(many * query.reach / scale for query, many, scale in both))
    worst = 0.0
    for column in d["columns"]:
        own = [entry for entry in d["entries"] if entry["column"] == column]
        others = [p for p, e in zip(prices, d["entries"], strict=True) if e["column"] != column]
        queries = [query for entry in own for query in entry["queries"]]
        scales = [scale for entry in own for scale in entry["scales"]]
        alone = leakage_of_rows(d["models"][column], queries, scales) if own else 0.0
        worst = max(worst, alone + sum(others))
    return worst <= d["epsilon"] * (1 + 1e-9)


def confirmed_by(twins, sound) -> int:
    """Return how many of some files are proved; each of them must be sound."""
    proved = 0
    for twin in twins:
        if check(twin)[0] == PROVED:
            with contextlib.suppress(PdpError):  # the library reads no such file
                assert sound(twin), twin
                proved += 1
    return proved
