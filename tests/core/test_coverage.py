"""What is known about the error of a learned model goes wherever the model goes."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.coverage import Coverage
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.numbers import at_most
from pdp_calibrate.show.hazards import checklist
from pdp_calibrate.show.words import learned

COVERED = Coverage(kind="covered", confidence=0.95, over="sampling and noise", notes=("a", "b"))


def series(correlation: float = 0.5) -> pdp.GaussianSeries:
    return pdp.GaussianSeries(length=6, correlation=correlation, bounds=(0, 1), provenance="public")


def stored(model: Model) -> Model:
    found = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "coverage",
    [
        COVERED,
        Coverage(kind="point", upper=series(0.7)),
        Coverage(kind="no band", notes=("why",)),
    ],
)
def test_the_record_survives_json_budgets_and_blocks(coverage: Coverage) -> None:
    model = series().with_coverage(coverage)
    for one in (model, model.learned_with(0.5), series().learned_with(0.5).with_coverage(coverage)):
        assert one.coverage == coverage
        assert stored(one) == one
        assert stored(one).coverage == coverage
        blocks = pdp.Blocks(models=[one], counts=[7])
        assert blocks.coverage == coverage
        assert stored(blocks).coverage == coverage


def test_the_record_is_part_of_what_a_model_is() -> None:
    plain = series()
    assert plain.coverage is None
    assert plain.with_coverage(COVERED) != plain
    assert len({plain.with_coverage(c).digest for c in (COVERED, Coverage(kind="no band"))}) == 2


def test_what_several_samples_cover_together_is_less_and_never_more() -> None:
    one, other = (series(phi).with_coverage(COVERED) for phi in (0.3, 0.6))
    both = pdp.Blocks(models=[one, other]).coverage
    assert both is not None
    assert both.kind == "covered"
    assert both.confidence is not None
    assert both.confidence <= 0.9 + 1e-12
    for open_ in (Coverage(kind="point"), Coverage(kind="no band")):
        mixed = pdp.Blocks(models=[one, series(0.4).with_coverage(open_)]).coverage
        assert mixed is not None
        assert mixed.kind == open_.kind
    many = pdp.Blocks(models=[series(phi / 30).with_coverage(COVERED) for phi in range(1, 25)])
    assert many.coverage is not None
    assert many.coverage.kind == "no band"  # 24 misses of 5 % add up to more than certainty


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "covered"},
        {"kind": "covered", "confidence": 0.9},
        {"kind": "point", "confidence": 0.9},
        {"kind": "certain"},
        {"kind": "covered", "confidence": 1.5, "over": "sampling"},
        {"kind": "covered", "confidence": 0.9, "over": "everything"},
    ],
)
def test_a_record_that_says_too_much_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(pdp.ModelError):
        Coverage(**wrong)  # type: ignore[arg-type]


def test_the_phrases() -> None:
    said = {
        COVERED: "learned, covered at 0.95 over sampling and noise",
        Coverage(kind="point"): "learned, point (open)",
        Coverage(kind="no band"): "learned, no band (open)",
    }
    for coverage, words in said.items():
        assert learned(series().with_coverage(coverage)) == words


@pytest.mark.parametrize("kind", ["point", "no band"])
def test_plain_dp_is_never_called_enough_for_an_open_model(kind: str) -> None:
    independent = series(0.0)
    enough = "would have been enough"
    assert enough in pdp.explain(pdp.calibrate(independent, pdp.Sum(), epsilon=1.0))
    open_ = independent.with_coverage(Coverage(kind=kind))  # type: ignore[arg-type]
    assert enough not in pdp.explain(pdp.calibrate(open_, pdp.Sum(), epsilon=1.0))
    covered = independent.with_coverage(COVERED)
    assert enough in pdp.explain(pdp.calibrate(covered, pdp.Sum(), epsilon=1.0))


def test_a_point_whose_scale_leaks_above_a_tenth_more_warns_with_the_covering_scale() -> None:
    near, far = series(0.52), series(0.9)
    query = pdp.Sum()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdp.calibrate(series().with_coverage(Coverage(kind="point", upper=near)), query, epsilon=1)
    point = series().with_coverage(Coverage(kind="point", upper=far))
    with pytest.warns(pdp.ModelFitWarning) as said:
        scale = pdp.calibrate(point, query, epsilon=1.0).scale
    words = str(said[0].message)
    assert f"{pdp.leakage(far, query, scale=scale).value:.4g}" in words
    assert f"{pdp.calibrate(far, query, epsilon=1.0).scale:.6g}" in words
    with pytest.warns(pdp.ModelFitWarning):
        pdp.calibrate(point, [query, pdp.Mean()], epsilon=1.0, shares=[2, 1])
    with pytest.warns(pdp.ModelFitWarning):
        pdp.calibrate_to_accuracy(point, query, half_width=3.0)


def test_a_model_of_an_earlier_version_that_was_learned_is_open() -> None:
    told = series(0.0).learned_with(0.5)  # as 0.2 wrote it: what is covered is not said
    assert told.coverage is None
    cal = pdp.calibrate(told, pdp.Sum(clamp=True), epsilon=1.0)
    assert learned(told) == "learned, no band (open)"
    assert "would have been enough" not in pdp.explain(cal)
    (point,) = [one for one in checklist(cal, total=1.5, counted=False) if "learned" in one.name]
    assert point.status == "open"
    assert learned(series()) is None  # stated, about public data


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("several", [False, True])
def test_the_cost_of_a_miss_is_what_any_dependence_leaks(noise: Any, several: bool) -> None:
    given: dict[str, Any] = {"noise": noise} | ({"delta": 1e-6} if noise == "gaussian" else {})
    query: Any = [pdp.Sum(clamp=True), pdp.Mean(clamp=True)] if several else pdp.Sum(clamp=True)
    home = pdp.GaussianGroup(size=4, correlation=0.1, bounds=(0, 2), provenance="public")
    cal = pdp.calibrate(home.with_coverage(COVERED), query, epsilon=1.0, **given)
    cost = cal.group_epsilon
    assert cost is not None
    assert cost > 1
    worst = pdp.leakage(pdp.Unknown(size=4, bounds=(0, 2)), query, scale=cal.scale, **given).value
    assert cost >= worst * (1 - 1e-9)
    assert cost == pytest.approx(worst, rel=1e-6)
    told = pdp.explain(cal)
    assert f"leaks at most {at_most(cost, digits=4)}" in told
    assert ("at δ = 1e-06" in told) == (noise == "gaussian")


def test_no_number_is_said_where_a_group_has_no_end() -> None:
    endless = pdp.GaussianSeries(length=None, correlation=0.3, bounds=(0, 1), provenance="public")
    cal = pdp.calibrate(endless.with_coverage(COVERED), pdp.Sum(clamp=True), epsilon=1.0)
    assert cal.group_epsilon is None
    assert "what its scale leaks about a group" in pdp.explain(cal)


@pytest.mark.parametrize("epsilon", [1.0, None])
def test_a_ledger_warns_about_points_too(epsilon: float | None) -> None:
    point = series().with_coverage(Coverage(kind="point", upper=series(0.9)))
    ledger = pdp.Ledger(point, epsilon=1.0)
    with pytest.warns(pdp.ModelFitWarning, match="covers it"):
        ledger.release(pdp.Sum(clamp=True), dict.fromkeys(point.names, 0.5), epsilon=epsilon)
