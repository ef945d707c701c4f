"""A family is a model and an engine: one of forty lines works everywhere."""

import math

import jsonschema
import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate import families
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.model import Model, default_names
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.show.correlations import correlations
from pdp_calibrate.show.networks import network


class EveryoneTheSameEngine(Engine):
    """All tuples are one coin: whoever knows nobody sees all of them move together."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.moves = math.fsum(problem.contributions.tuple_ranges())

    def search(self, scale: float, _limits: Limits) -> Bracket:
        names, (low, high) = self.problem.names, self.problem.model.domains[0]
        witness = Witness(
            target=names[0], known={}, secrets=(high, low), output=math.inf,
            model=self.problem.model,
        )  # fmt: skip
        upper, lower = self.moves / scale * (1 + 1e-15), self.moves / scale * (1 - 1e-15)
        others = tuple(range(1, len(names)))
        return Bracket(upper=upper, lower=lower, witness=witness, target=0, unknown=others)


class _EveryoneTheSame(Model):  # the underscore keeps it out of the list of families
    """A coin that all tuples show."""

    engine = EveryoneTheSameEngine
    defined_by = ("size",)
    dependence = "one coin, which all entries show"
    at_group_privacy = "All entries are one coin, and no model can help."

    def __init__(self, *, size: int) -> None:
        self.names, self.provenance, self.size = default_names(size), "assumed", size

    @property
    def domains(self) -> tuple[tuple[int, int], ...]:
        return ((0, 1),) * self.size

    def pearson_matrix(self) -> FloatArray:
        return np.ones((self.size, self.size))

    def coupled_pairs(self) -> dict[tuple[int, int], float]:
        return {(place, place + 1): math.inf for place in range(self.size - 1)}

    def draws(self, number, *, given, target, rng) -> FloatArray:
        del rng
        return np.tile(float(given[target]), (number, self.size))


def test_a_new_family_is_explained_drawn_audited_and_in_the_schema(monkeypatch, tmp_path):
    same = _EveryoneTheSame(size=3)
    cal = pdp.calibrate(same, pdp.Sum())
    assert "one coin, which all entries show" in pdp.explain(cal)
    assert "one coin, and no model can help" in pdp.explain(cal)
    drawn = network(cal)
    assert drawn.couplings == ((0, 1, None), (1, 2, None))
    assert drawn.bounds == pytest.approx([1.0] * 3)
    pdp.report(cal, tmp_path / "report.html")
    assert "one coin" in (tmp_path / "report.html").read_text("utf-8")
    assert np.all(np.array(correlations(same).matrix) == 1.0)
    found = pdp.audit(cal, draws=20_000, confidence=1 - 1e-11, seed=0)
    assert 0.0 < found.lower_bound <= 1.0
    monkeypatch.setitem(families.MODELS, "_EveryoneTheSame", __name__)  # the one line
    schema = jsonschema.Draft202012Validator(pdp.json_schema())
    schema.validate(same.to_dict())
    assert not schema.is_valid({**same.to_dict(), "size": None} | {"provenance": "private"})


def test_a_new_family_is_calibrated_released_stored_and_explained():
    same = _EveryoneTheSame(size=4)
    twins = pdp.JointTable(probabilities=[[0.5, 0.0], [0.0, 0.5]], domains=[[0, 1]] * 2)
    assert pdp.calibrate(_EveryoneTheSame(size=2), pdp.Sum()).scale == pytest.approx(
        pdp.calibrate(twins, pdp.Sum()).scale
    )
    cal = pdp.calibrate(same, pdp.Sum(), epsilon=0.5)
    assert cal.scale == pytest.approx(8.0)
    assert isinstance(cal.release(dict.fromkeys(same.names, 1)).value, int)
    assert pdp.Calibration.from_json(cal.to_json()).model == same
    assert "x1" in pdp.explain(cal)
    both = pdp.Blocks(models=[same, twins])
    assert pdp.calibrate(both, pdp.Sum(), epsilon=0.5).scale == pytest.approx(8.0)
    ledger = pdp.Ledger(same, epsilon=1.0)
    ledger.release(pdp.Sum(), dict.fromkeys(same.names, 0), epsilon=0.5)
    assert ledger.charge(0.1) == pytest.approx(0.9)
