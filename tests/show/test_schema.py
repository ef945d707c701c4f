"""One JSON Schema, kept by every object that is really written, and by nothing else."""

import copy
import json
import warnings

import jsonschema
import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model, model_named
from pdp_calibrate.families import MODELS as HOMES
from pdp_calibrate.jobs.plan import PLAN, problem_of

VALIDATOR = jsonschema.Draft202012Validator(pdp.json_schema())

TABLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["mother", "child"]
)
PAIR = pdp.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
MODELS = [
    TABLE,
    pdp.JointTable(probabilities=[[0.5, 0.5]], domains=[["a"], [True, None]], names=[("k", 1), 2]),
    pdp.JointTable(probabilities=np.full((2,) * 14, 2.0**-14), domains=[[0, 1]] * 14),
    pdp.JointTable(probabilities=[1.0], domains=[[3]], provenance="private"),
    PAIR,
    pdp.LoewnerBall(center=PAIR, radius=0.1),
    pdp.SampledGaussian(center=PAIR, rows=50),
    pdp.GaussianNetwork(precision=[[2.0, -1.0], [-1.0, 2.0]], bounds=(0, 1)),
    pdp.GaussianGroup(size=3, correlation=(0, 0.4), bounds=(0, 1)),
    pdp.GaussianSeries(length=3, correlation=0.4, bounds=(0, 1)),
    pdp.BinaryGroup(count_probabilities=[0.5, 0.2, 0.3]),
    pdp.CategoryGroup(
        size=1, categories=["a", "b", "c"], count_probabilities=[0.5, 0.2, 0.3], provenance="dp"
    ),
    pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=3, states=["sun", "rain"]),
    pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=3, initial=[0.5, 0.5]),
    pdp.Unknown(size=2, domain=["x", "y"]),
    pdp.Unknown(size=2, bounds=(0, 1)),
    pdp.Blocks(models=[TABLE], counts=[3]),
    pdp.ModelSet(models=[TABLE, TABLE]),
]
ALIKE = [[0.9, 0.1], [0.2, 0.8]]
MODELS += [
    pdp.ConditionalBall(center=TABLE, radius=0.1),
    pdp.SampledTable(counts=[[9, 2], [3, 8]], domains=[[0, 1]] * 2),
    pdp.MixingChain(length=3, states=[0, 1], diameter=1.0),
    pdp.SampledChain(counts=[[9, 2], [3, 8]], length=3, states=[0, 1], starts=[4, 1]),
    pdp.RateGroup(size=3, beta=[1.0, 2.0]),
    pdp.MarkovTree(domains=[[0, 1]] * 2, parents=[None, 0], tables=[[0.5, 0.5], ALIKE]),
    pdp.Network(factors=[("ab", ALIKE)], domains={"a": [0, 1], "b": [0, 1]}),
]


def released():
    """Calibrations and releases of every kind, and the ledger's file is apart."""
    data = {"mother": 1, "child": 0}
    queries = [
        pdp.Sum(),
        pdp.Mean(over=["child"]),
        pdp.Count(values={1}),
        pdp.Histogram(),
        pdp.Linear(weights={"mother": 2, "child": -1}),
        pdp.Linear(weights=[1, 2]),
        pdp.Custom(function=max),
    ]
    for query in queries:
        yield pdp.calibrate(TABLE, query).release(data)
    yield pdp.calibrate(TABLE, pdp.Sum(), adversaries=pdp.Adversaries.weakest()).release(data)
    yield pdp.calibrate(
        TABLE, pdp.Sum(), adversaries=pdp.Adversaries.exactly("child", known=["mother"])
    ).release(data)
    yield pdp.calibrate(PAIR, pdp.Mean(clamp=True)).release({"x1": 0.5, "x2": 2.0})
    yield pdp.calibrate(TABLE, queries[:2]).release(data)
    yield pdp.calibrate(TABLE, [pdp.Histogram(), pdp.Sum()]).release(data)
    frame = pd.DataFrame({"mother": [0, 1], "child": [1, 1]})
    yield pdp.calibrate(TABLE, pdp.Sum()).release_rows(frame)
    yield pdp.calibrate(TABLE, pdp.Histogram()).release_rows(frame)


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(pdp.json_schema())
    json.dumps(pdp.json_schema())


def test_every_family_of_models_is_described():
    used = {type(model).__name__ for model in MODELS}
    families = {name for name in Model._families if not name.startswith("_")}
    assert used == families == set(HOMES), "give an example of the new family"
    for kind in HOMES:
        family = model_named(kind)
        assert family.dependence, kind
        assert kind == "Unknown" or set(family.json_fields) == set(family.defined_by), kind


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_keep_the_schema_and_each_field_counts(model):
    described = json.loads(json.dumps(model.to_dict()))
    VALIDATOR.validate(described)
    for field in described:
        if field not in ("digest", "version"):  # version 1 had none
            broken = {key: value for key, value in described.items() if key != field}
            assert not VALIDATOR.is_valid(broken) or field in ("domain", "bounds", "domains")


def test_a_private_model_must_not_show_its_numbers():
    shown = MODELS[0].to_dict() | {"provenance": "private"}
    assert not VALIDATOR.is_valid(shown)


def test_releases_keep_the_schema_and_come_back_from_json(tmp_path):
    for release in released():
        described = json.loads(release.to_json())
        VALIDATOR.validate(described)
        VALIDATOR.validate(described["calibration"])
        for field in set(described) - {"version", "layout", "sizes"}:
            broken = {key: value for key, value in described.items() if key != field}
            assert not VALIDATOR.is_valid(broken), field
        for field in set(described["calibration"]) - {"estimation_epsilon", "assuming", "version"}:
            broken = copy.deepcopy(described)
            del broken["calibration"][field]
            assert not VALIDATOR.is_valid(broken), field
        path = tmp_path / "release.json"
        path.write_text(release.to_json())
        again = pdp.load(path)
        assert _without_leakage(again) == _without_leakage(release)
        for found, value in zip(again.values, release.values, strict=True):
            assert np.array_equal(np.asarray(found), np.asarray(value))


def _without_leakage(release):
    """Describe a release but for the bracket, which reading proves anew."""
    described = release.to_dict()
    assert described["calibration"].pop("leakage")["value"] <= release.calibration.epsilon
    return described


def test_a_private_calibration_and_a_ledger_keep_the_schema(tmp_path):
    secret = pdp.JointTable(
        probabilities=TABLE.probabilities, domains=TABLE.domains, provenance="private"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdp.PrivacyLeakWarning)
        VALIDATOR.validate(pdp.calibrate(secret, pdp.Sum()).to_dict())
    path = tmp_path / "budget.json"
    ledger = pdp.Ledger(TABLE, epsilon=2.0, path=path)
    ledger.release(pdp.Sum(), {"mother": 1, "child": 0}, epsilon=0.5)
    ledger.charge(0.1, note="elsewhere")
    state = json.loads(path.read_text())
    VALIDATOR.validate(state)
    assert not VALIDATOR.is_valid(state | {"entries": [{"kind": "release"}]})
    assert pdp.load(path).spent == ledger.spent


PLANNED = {
    "data": {"file": "people.csv", "groups": "household"},
    "model": {"bounds": {"income": [0, 100]}, "correlation": [0, 0.4], "public": False},
    "budget": {"epsilon": 2.0, "ledger": "budget.json", "time_limit": 10},
    "queries": [{"query": "mean(income)", "epsilon": 0.5, "name": "mean"}],
    "output": {"report": "report.html"},
}
WRONG = [1, -1.0, "text", True, None, [], {}, [1, 2], [1, "a"], {"income": [1]}, [[0, 1]]]


def test_plans_are_refused_in_words_exactly_where_the_schema_is_broken():
    validator = jsonschema.Draft202012Validator(PLAN)
    assert problem_of(PLANNED) == ""
    verdicts = set()
    for section in [*PLANNED, "surprise"]:
        for value in WRONG:
            verdicts.add(_agree(validator, PLANNED | {section: value}))
        for key in PLAN["properties"].get(section, {}).get("properties", {}):
            for value in WRONG:
                changed = PLANNED[section] | {key: value}
                verdicts.add(_agree(validator, PLANNED | {section: changed}))
    for key in ("query", "epsilon", "name", "surprise"):
        for value in WRONG:
            changed = [PLANNED["queries"][0] | {key: value}]
            verdicts.add(_agree(validator, PLANNED | {"queries": changed}))
        left = {k: v for k, v in PLANNED["queries"][0].items() if k != key}
        verdicts.add(_agree(validator, PLANNED | {"queries": [left]}))
    assert verdicts == {True, False}


def _agree(validator, plan) -> bool:
    problem = problem_of(plan)
    assert (not problem) == validator.is_valid(plan), (plan, problem)
    assert not any(repr(secret) in problem for secret in ("text", -1.0))
    return not problem


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file"),
        ("", "is not JSON"),
        ("[1]", "is not a file of this library"),
        ('{"schema": "other"}', "is not a file of this library"),
        ('{"schema": "pdp-calibrate/1"}', "lacks"),
        ('{"schema": "pdp-calibrate/1", "type": "Nonsense"}', "unknown type"),
        ('{"schema": "pdp-calibrate/1", "type": "Calibration", "model": 3}', "damaged"),
        (json.dumps(MODELS[3].to_dict()), "withholds"),
    ],
)
def test_files_that_cannot_be_read_back(tmp_path, content, words):
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(pdp.PdpError, match=words):
        pdp.load(path)
