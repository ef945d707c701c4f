"""Whatever stands in a field of a file, reading it ends in an error of this library or not at all.

Found by coverage-guided fuzzing (`tests/benchmarks/fuzz.py`).
"""

import copy
import json
import time

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import PlanError
from pdp_calibrate.jobs.grammar import QuerySyntaxError, parse_query, parse_values
from pdp_calibrate.jobs.plan import read_plan
from pdp_calibrate.ledger.store import FileStore, _checksum
from tests.support.families import FAMILIES

ODD = [None, True, -1, 0.5, 10**400, float("nan"), "x", [], [0], {}, {"type": []}, [[None]]]
PAIR = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)


def places(node, path=()):
    """Return the way to every node; of a list, only to its first items."""
    yield path
    items = node.items() if isinstance(node, dict) else ()
    items = list(enumerate(node))[:2] if isinstance(node, list) else items
    for key, child in items:
        yield from places(child, (*path, key))


def damaged(document):
    """Return the document with each node replaced by each odd value."""
    for path in places(document):
        for odd in ODD:
            if not path:
                yield odd
                continue
            changed = copy.deepcopy(document)
            node = changed
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = odd
            yield changed


def read_or_refused(read, documents):
    refused = 0
    for document in documents:
        try:
            read(document)
        except pdp.PdpError:
            refused += 1
    return refused


@pytest.mark.parametrize("family", FAMILIES)
def test_models(family):
    described = FAMILIES[family].draw(np.random.default_rng(1)).to_dict()
    assert read_or_refused(Model.from_dict, damaged(described)) > 50


QUERIES = [pdp.Sum(), pdp.Mean(over=["x1"]), pdp.Count(values=[1]), pdp.Linear(weights={"x1": 2.0}),
           pdp.Histogram()]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_calibrations_and_releases(query):
    release = pdp.calibrate(PAIR, query).release({"x1": 0, "x2": 1}).to_dict()
    refused = read_or_refused(
        lambda found: pdp.Release.from_json(json.dumps(found)), damaged(release)
    )
    assert refused > 100


def test_joint_releases():
    queries = [pdp.Sum(), pdp.Count(values=[1])]
    release = pdp.calibrate(PAIR, queries).release({"x1": 0, "x2": 1}).to_dict()
    refused = read_or_refused(
        lambda found: pdp.Release.from_json(json.dumps(found)), damaged(release)
    )
    assert refused > 100


def test_files(tmp_path):
    file = tmp_path / "file.json"
    for odd in ('{"schema": "pdp-calibrate/1", "type": ' + "[" * 100_000, "9" * 5000, "[" * 10**5):
        file.write_text(odd)
        with pytest.raises(pdp.PdpError):
            pdp.load(file)
        with pytest.raises(pdp.LedgerError):
            pdp.Ledger.open(file)
        with pytest.raises(pdp.PdpError):
            pdp.Calibration.from_json(odd)
        file.write_text(f"a = {odd}")
        with pytest.raises(PlanError):
            read_plan(file)
    described = pdp.calibrate(PAIR, pdp.Sum()).to_dict() | {"scale": 10**400}
    file.write_text(json.dumps(described))
    with pytest.raises(pdp.PdpError, match="too large for any float"):
        pdp.load(file)


def test_ledgers_with_a_good_checksum(tmp_path):
    file = tmp_path / "ledger.json"
    ledger = pdp.Ledger(PAIR, epsilon=3.0, path=file)
    ledger.spend(pdp.calibrate(PAIR, pdp.Sum(), epsilon=0.5))
    ledger.charge(0.01)
    state = FileStore(file).read()

    def read(found):
        file.write_text(json.dumps(found | {"checksum": _checksum(found)}))
        opened = pdp.Ledger.open(file)
        return opened.spent, opened.remaining, opened.history

    written = (found for found in damaged(state) if isinstance(found, dict))
    assert read_or_refused(read, written) > 100


@pytest.mark.parametrize(
    ("at_least", "at_most"), [(-2, -1), (0.2, 0.8), (float("nan"), None), (None, -3), (2, 1)]
)
def test_adversaries_who_cannot_be(at_least, at_most):
    with pytest.raises(pdp.PdpError, match="at_least"):
        pdp.Adversaries(at_least=at_least, at_most=at_most)
    with pytest.raises(pdp.PdpError, match="at_least"):
        pdp.Adversaries.from_dict({"at_least": at_least, "at_most": at_most})


@pytest.mark.parametrize("value", ["text", {}, [0.5, "a"], float("nan"), None])
def test_a_release_must_hold_numbers(value):
    release = pdp.calibrate(PAIR, pdp.Sum()).release({"x1": 0, "x2": 1}).to_dict()
    with pytest.raises(pdp.PdpError):
        pdp.Release.from_json(json.dumps(release | {"value": value}))
    joint = pdp.calibrate(PAIR, [pdp.Sum(), pdp.Sum()]).release({"x1": 0, "x2": 1}).to_dict()
    with pytest.raises(pdp.PdpError):
        pdp.Release.from_json(json.dumps(joint | {"value": [0, value]}))


@pytest.mark.parametrize("rows", [1.5, float("nan"), 0, -1, True])
def test_rows_are_a_whole_number(rows):
    described = pdp.calibrate(PAIR, pdp.Sum()).to_dict() | {"rows": rows}
    with pytest.raises(pdp.PdpError):
        pdp.Calibration.from_json(json.dumps(described))


def test_long_numbers_in_queries():
    begun = time.process_time()
    parse_query("sum(" + "9" * 50_000 + "a)")  # a column; once quadratic: minutes
    assert time.process_time() - begun < 5
    with pytest.raises(QuerySyntaxError, match="at most"):
        parse_values("1, " + "9" * 5000)
    assert parse_values("12., .5, 1e3, 1.5E-2, 7") == (12.0, 0.5, 1000.0, 0.015, 7)
