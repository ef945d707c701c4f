"""Files that are small and ask for much work: by hand, far beyond what a calibration would try."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

Stored = dict[str, Any]
HEAD = {"schema": "pdp-calibrate/1", "version": 2}


def asked(model: Stored, query: Any, scale: Any = 50.0, **more: Any) -> Stored:
    """Return a calibration by hand."""
    noise = "Laplace" if isinstance(query, dict) else ["Laplace"] * len(query)
    about = {"epsilon": 1.0, "scale": scale, "noise": noise, "rows": 1, "query": query}
    who = {"adversaries": {"at_least": 0, "at_most": None}}
    return HEAD | {"type": "Calibration", "model": model} | about | who | more


def model(kind: str, many: int, **fields: Any) -> Stored:
    """Return a stored model of numbered tuples."""
    names = list(range(many))
    return HEAD | {"type": kind, "names": names, "provenance": "assumed"} | fields


SUM = {"type": "Sum", "over": None, "clamp": False}
CLAMPED = SUM | {"clamp": True}
COUNTS = {"type": "Histogram", "over": None, "categories": None}


def linear(weights: Any) -> Stored:
    """Return a weighted sum."""
    return {"type": "Linear", "by": "position", "weights": list(weights), "clamp": False}


def unknown(size: int, values: int) -> Stored:
    """Return a histogram about tuples of any dependence."""
    return asked(model("Unknown", size, size=size, domain=list(range(values))), COUNTS)


def series(length: int, correlation: Any, query: Stored = CLAMPED) -> Stored:
    """Return a sum over a Gaussian series."""
    about = {"correlation": correlation, "bounds": [0, 1], "variance": None}
    return asked(model("GaussianSeries", length, **about), query, 10.0 * length)


def uneven(length: int, correlation: float, most: int | None) -> Stored:
    """Return a weighted sum over a Gaussian series, about whoever knows at most so many."""
    described = series(length, correlation, linear(np.linspace(1, 2, length)))
    described["model"]["variance"] = 1.0
    return described | {"adversaries": {"at_least": 0, "at_most": most}}


def chain(states: int, length: int, query: Any, seed: int = 0, **more: Any) -> Stored:
    """Return a question about a Markov chain of random steps."""
    steps = np.random.default_rng(seed).dirichlet([1.0] * states, size=states).tolist()
    about = {"states": list(range(states)), "length": length, "transition": steps, "initial": None}
    return asked(model("MarkovChain", length, **about | more), query)


def group(size: int) -> Stored:
    """Return a sum over a group of yes and no."""
    return asked(model("BinaryGroup", size, count_probabilities=[1 / (size + 1)] * (size + 1)), SUM)


def categories(size: int, values: int) -> Stored:
    """Return a sum over a group of several categories."""
    many = int(np.prod(np.arange(size + 1, size + values)) // np.prod(np.arange(1, values)))
    about = {"categories": list(range(values)), "count_probabilities": [1 / many] * many}
    return asked(model("CategoryGroup", size, **about), SUM)


def gaussian(size: int, tiny: float = 1.0, **more: Any) -> Stored:
    """Return a sum over a random covariance, scaled apart."""
    root = np.random.default_rng(1).normal(size=(size, 2 * size))
    scales = np.geomspace(tiny, 1, size)
    covariance = (root @ root.T * np.outer(scales, scales)).tolist()
    covariance = [[covariance[min(j, k)][max(j, k)] for k in range(size)] for j in range(size)]
    about = {"mean": [0] * size, "covariance": covariance, "bounds": [0, 1]}
    return asked(model("Gaussian", size, **about), SUM, 50.0 * size, **more)


def table(columns: int, values: int, query: Any = SUM) -> Stored:
    """Return a question about a random table, whose scale is on the edge."""
    shape = (values,) * columns
    cells = np.random.default_rng(2).dirichlet([0.3] * values**columns).reshape(shape)
    about = {"domains": [list(range(values))] * columns, "probabilities": cells.tolist()}
    return asked(model("JointTable", columns, **about), query, 1.5 * columns)


def grid(size: int) -> Stored:
    """Return a sum over a square of coupled tuples."""
    place = {(i, j): i * size + j for i in range(size) for j in range(size)}
    scopes = [[place[i, j], place[k, m]] for (i, j) in place for k, m in ((i + 1, j), (i, j + 1))
              if (k, m) in place]  # fmt: skip
    about = {"domains": [[0, 1]] * size**2, "scopes": scopes, "influences": {}}
    about["factors"] = [[[1.2, 1.0], [1.0, 1.2]]] * len(scopes)
    return asked(model("Network", size**2, **about), SUM)


def complete(size: int) -> Stored:
    """Return a sum over tuples all of which are coupled."""
    scopes = [[i, j] for i in range(size) for j in range(i)]
    about = {"domains": [[0, 1]] * size, "scopes": scopes, "influences": {}}
    about["factors"] = [[[1.01, 1.0], [1.0, 1.01]]] * len(scopes)
    return asked(model("Network", size, **about), SUM)


def ledger(releases: int) -> Stored:
    """Return a ledger of many different questions about one chain."""
    steps = [[0.7, 0.3], [0.3, 0.7]]
    about = {"states": [0, 1], "length": 30, "transition": steps, "initial": None}
    entry = {
        "draw": "first",
        "kind": "release",
        "note": "",
        "at": "",
        "spent": 0.5,
        "method": "exact",
    }
    about_all = {"scales": [1e6], "rows": 1, "epsilon": 1e-3}
    weights = ([float(k % (2 + n % 7)) for k in range(30)] for n in range(releases))
    asked_for = [about_all | {"queries": [linear(own)]} for own in weights]
    who = {"at_least": 0, "at_most": None}
    held = {"type": "Ledger", "epsilon": 1.0, "adversaries": who, "draws": ["first"]}
    entries = [entry | one for one in asked_for]
    return HEAD | held | {"model": model("MarkovChain", 30, **about), "entries": entries}


def blocks(many: int, one: Stored) -> Stored:
    """Return a sum over many blocks."""
    inner, size = one["model"], len(one["model"]["names"])
    names = [[block, k] for block in range(many) for k in range(size)]
    about = {"models": [inner] * many, "counts": [1] * many, "provenance": "assumed"}
    return one | {"model": HEAD | {"type": "Blocks", "names": names} | about}


def members(many: int, one: Stored) -> Stored:
    """Return the same question about a set of many models."""
    about = {"models": [one["model"]] * many, "provenance": "assumed"}
    return one | {"model": HEAD | {"type": "ModelSet", "names": one["model"]["names"]} | about}


HARD: dict[str, Callable[[], Stored]] = {
    "histogram of 50 values": lambda: unknown(1, 50),
    "histogram of 200 values": lambda: unknown(1, 200),
    "histogram of 1,000 values, 4 members": lambda: unknown(4, 1_000),
    "histogram of 100 values, 50 members": lambda: unknown(50, 100),
    "histogram of 1,400 values": lambda: unknown(2, 1_400),
    "histogram of 100,000 values": lambda: unknown(2, 100_000),
    "many values, several sums": lambda: asked(
        model("Unknown", 2, size=2, domain=np.random.default_rng(0).normal(size=3_000).tolist()),
        [SUM, linear([1.0, 0.1]), linear([0.3, -1.7])], [99.0, 98.0, 97.0]),
    "tiny correlation, 1,000 steps": lambda: series(1_000, 1.2345e-300),
    "correlation, 4,000 steps": lambda: series(4_000, 0.912),
    "correlation, 1,000,000 steps": lambda: series(1_000_000, 0.912),
    "range of correlation, 4,000 steps": lambda: series(4_000, [-0.5, 0.912]),
    "uneven steps, nobody known": lambda: uneven(60, 0.7123, 0),
    "uneven steps, 300 of them": lambda: uneven(300, 0.7123, 0),
    "uneven steps, tiny": lambda: uneven(13, 1.2345e-300, None),
    "40 states, 50 steps": lambda: chain(40, 50, SUM, initial=[1 / 40] * 40),
    "120 states, stationary": lambda: chain(120, 50, SUM),
    "200 states, histogram": lambda: chain(200, 3, COUNTS),
    "3 states, 60 steps": lambda: chain(3, 60, SUM),
    "3 states, 1,000 steps, histogram": lambda: chain(3, 1_000, COUNTS),
    "2 states, 100,000 steps, histogram": lambda: chain(2, 100_000, COUNTS),
    "chain of uneven weights": lambda: chain(3, 40, linear(np.random.default_rng(0).random(40))),
    "group of 300": lambda: group(300),
    "group of 3,000": lambda: group(3_000),
    "group of 200,000": lambda: group(200_000),
    "group of 40 in 4 categories": lambda: categories(40, 4),
    "group of 12 in 8 categories": lambda: categories(12, 8),
    "covariance of 13": lambda: gaussian(13),
    "covariance of 13, far apart": lambda: gaussian(13, 1e-140),
    "covariance of 80": lambda: gaussian(80),
    "covariance of 60, a certificate": lambda: gaussian(
        60, certificate={"branches": {str(k): 0 for k in range(60)}}),
    "covariance of 400, a certificate": lambda: gaussian(
        400, 1e-100, certificate={"branches": {"0": 0}}),
    "table of 2^13": lambda: table(13, 2),
    "table of 2^14": lambda: table(14, 2),
    "table of 2^12, two sums": lambda: table(12, 2, [SUM, linear(range(12))])
        | {"scale": [40.0, 300.0]},
    "table of 4^6, a histogram": lambda: table(6, 4, COUNTS),
    "table of 2^12, plans": lambda: table(12, 2, COUNTS) | {"certificate": {"plans": []}},
    "table of 128^2": lambda: table(2, 128),
    "grid of 30 by 30": lambda: grid(30),
    "complete network of 60": lambda: complete(60),
    "complete network of 300": lambda: complete(300),
    "ledger of 2,000 questions": lambda: ledger(2_000),
    "1,000 blocks": lambda: blocks(1_000, chain(2, 5, SUM)),
    "30 blocks of 12": lambda: blocks(30, table(10, 2)),
    "a factor of 300,000 cells": lambda: asked(
        model("Network", 2, domains=[list(range(1_000)), list(range(300))], scopes=[[0, 1]],
              influences={}, factors=[np.ones((1_000, 300)).tolist()]), SUM, 9e5),
    "an interval of 500,000 values": lambda: asked(
        model("Unknown", 2, size=2, domain=list(range(500_000))), SUM, 9e6),
    "10 MB of lists": lambda: unknown(1, 3) | {"nothing": [[] for _ in range(3_000_000)]},
    "100,000 questions": lambda: asked(
        model("Unknown", 20, size=20, domain=[0, 1]), [SUM] * 100_000, [1e9] * 100_000),
    "200 members": lambda: members(200, table(8, 2)),
}  # fmt: skip
"""The files of a table of times: by name, a function that makes each."""


def text_of(name: str) -> str:
    """Return the text of a file."""
    return json.dumps(HARD[name](), separators=(",", ":"))
