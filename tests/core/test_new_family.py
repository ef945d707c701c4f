"""A family is a model and an engine: one of thirty lines works everywhere."""

import math

import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.model import Model, default_names
from pdp_calibrate.core.problem import Engine, Limits, Problem


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

    def __init__(self, *, size: int) -> None:
        self.names, self.provenance, self.size = default_names(size), "assumed", size

    @property
    def domains(self) -> tuple[tuple[int, int], ...]:
        return ((0, 1),) * self.size


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
