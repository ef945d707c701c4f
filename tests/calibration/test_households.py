"""Long frames end to end: households and series, by model and by assumption."""

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

PEOPLE = pd.DataFrame(
    {
        "household": ["a", "a", "b", "b", "b", "c"],
        "region": ["n", "n", "s", "s", "s", "s"],
        "role": [2, 1, 1, 2, 3, 1],
        "income": [10.0, 20.0, 5.0, 250.0, -7.0, 40.0],
        "ill": [1, 0, 1, 1, 0, 0],
    }
)
INCOME = {"bounds": (0, 100), "groups": "household", "correlation": (0, 0.4), "epsilon": 1.0}
ILL = {"domain": [0, 1], "groups": "household", "epsilon": 1.0}


@pytest.mark.usefixtures("bare_answers")
def test_answers_are_clamped_and_over_everyone():
    assert PEOPLE.pdp.sum("income", **INCOME).value == 175.0
    assert PEOPLE.pdp.mean("income", **INCOME).value == pytest.approx(175 / 6)
    assert PEOPLE.pdp.count("ill", values={1}, **ILL).value == 3
    histogram = PEOPLE.pdp.histogram("ill", **ILL).value
    assert histogram.to_dict() == {0: 3, 1: 3}


def test_the_scale_is_that_of_the_largest_household():
    total = PEOPLE.pdp.sum("income", **INCOME).calibration
    assert total.scale == pytest.approx(100 * (1 + 2 * 0.4), rel=1e-6)
    mean = PEOPLE.pdp.mean("income", **INCOME).calibration
    assert mean.scale == pytest.approx(total.scale / 6, rel=1e-6)
    unknown = PEOPLE.pdp.sum("income", bounds=(0, 100), groups="household", epsilon=1.0).calibration
    assert unknown.scale == pytest.approx(300, rel=1e-6)
    count = PEOPLE.pdp.count("ill", values={1}, **ILL | {"epsilon": 0.5}).calibration
    assert count.scale == pytest.approx(6.0, rel=1e-9)
    assert "any way at all" in pdp.explain(count)
    histogram = PEOPLE.pdp.histogram("ill", **ILL).calibration
    assert histogram.scale == pytest.approx(6.0, rel=1e-9)


def test_a_series_uses_the_correlation_of_neighbours():
    hours = pd.DataFrame({"hour": [3, 1, 2, 0], "load": [1.0, 2.0, 3.0, 4.0]})
    release = hours.pdp.sum("load", bounds=(0, 10), order_by="hour", correlation=0.5, epsilon=1.0)
    assert release.calibration.scale == pytest.approx(10 * (1 + 2 * 0.5 + 0.25), rel=1e-6)
    meters = pd.concat([hours.assign(meter=m) for m in range(3)])
    same = meters.pdp.sum(
        "load", bounds=(0, 10), groups="meter", order_by="hour", correlation=0.5, epsilon=1.0
    )
    assert same.calibration.scale == pytest.approx(release.calibration.scale, rel=1e-6)


@pytest.mark.usefixtures("bare_answers")
@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
def test_weights_follow_the_order_inside_a_group():
    pairs = PEOPLE[PEOPLE.household == "a"]
    model = pdp.GaussianGroup(size=2, correlation=0.3, bounds=(0, 100))
    cal = pdp.calibrate(model, pdp.Linear(weights=[3, -1]))
    assert cal.release(pairs, value="income", by="household", order_by="role").value == 50.0
    with pytest.raises(pdp.UnsupportedQueryError, match="order_by="):
        cal.release(pairs, value="income", by="household")
    table = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=[0, 1]
    )
    cal = pdp.calibrate(table, pdp.Linear(weights=[5, 2]))
    assert cal.release(pairs, value="ill", by="household", order_by="role").value == 2
    twice = pairs.assign(role=1)
    with pytest.raises(pdp.ModelError, match="two equal entries"):
        cal.release(twice, value="ill", by="household", order_by="role")


@pytest.mark.parametrize("seed", range(5))
def test_crossing_regions_leak_no_more_than_promised(seed):
    """Region sums of one clamped household, by simulation of the two-dimensional release."""
    rng = np.random.default_rng(seed)
    rho, scale, width = float(rng.uniform(0.1, 0.9)), 1.0, 2.0
    bound = pdp.leakage(
        pdp.GaussianGroup(size=3, correlation=rho, bounds=(-1, 1)), pdp.Sum(clamp=True), scale=scale
    ).value
    shared = rng.normal(size=(200_000, 2)) * np.sqrt(1 - rho)
    common = rng.normal(size=200_000)
    noise_of_two = (shared + np.sqrt(rho * (1 - rho)) * common[:, None]) if rho < 1 else shared
    log_density = {}
    for secret in (-1.0, 1.0):
        others = np.clip(rho * secret + noise_of_two, -1, 1)
        regions = np.stack([secret + others[:, 0], others[:, 1]], axis=1)
        for r in ((2.0, 1.0), (-2.0, -1.0), (2.0, -1.0), (0.0, 0.0)):
            log_density[secret, r] = np.log(
                np.exp(-np.abs(np.array(r) - regions).sum(axis=1) / scale).mean()
            )
    for r in {key[1] for key in log_density}:
        assert abs(log_density[1.0, r] - log_density[-1.0, r]) <= bound + 0.02
    assert bound <= width * 3


def test_a_model_of_the_groups_is_checked_against_their_sizes():
    couples = pdp.BinaryGroup(count_probabilities=[0.5, 0.2, 0.3])
    with pytest.raises(pdp.ModelError, match="groups of size 1"):
        PEOPLE.pdp.count("ill", values={1}, groups="household", model=couples, epsilon=1.0)
    sizes = [
        pdp.BinaryGroup(count_probabilities=p)
        for p in ([0.5, 0.5], [0.5, 0.2, 0.3], [0.4, 0.2, 0.1, 0.3])
    ]
    blocks = pdp.Blocks(models=sizes, counts=[1, 1, 1])
    release = PEOPLE.pdp.count("ill", values={1}, groups="household", model=blocks, epsilon=1.0)
    assert release.calibration.scale <= 3
    mean = PEOPLE.pdp.mean("ill", groups="household", model=blocks, epsilon=1.0)
    assert mean.calibration.scale == pytest.approx(
        release.calibration.scale / len(PEOPLE), rel=1e-6
    )
    again = pdp.Blocks(models=sizes, counts=[1, 2, 1])
    with pytest.raises(pdp.QueryError, match="calibrated over 8 values, got 6"):
        PEOPLE.pdp.mean("ill", groups="household", model=again, epsilon=1.0)
    doubled = pdp.Blocks(models=[*sizes, sizes[0]])
    with pytest.raises(pdp.ModelError, match="two kinds of groups"):
        PEOPLE.pdp.count("ill", values={1}, groups="household", model=doubled, epsilon=1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.pdp.sum("income", groups="household", epsilon=1.0), "bounds="),
        (lambda f: f.pdp.sum("income", epsilon=1.0), "wide frame.* needs model="),
        (
            lambda f: f.pdp.sum(["income", "ill"], bounds=(0, 1), groups="household", epsilon=1.0),
            "one column",
        ),
        (
            lambda f: f.pdp.count(
                "ill", values={1}, groups="household", correlation=0.2, epsilon=1.0
            ),
            "does not cover counts",
        ),
        (lambda f: f.pdp.sum("income", max_group_size=2, **INCOME), "at most 2"),
        (lambda f: f.pdp.sum("income", bounds=(0, 1), epsilon=1.0), "column of the groups"),
        (lambda f: f.pdp.sum("wage", **INCOME), "no column wage"),
        (
            lambda f: f.assign(household=None).pdp.sum("income", **INCOME),
            "column household has missing",
        ),
        (lambda f: f.assign(income="x").pdp.sum("income", **INCOME), "must hold numbers"),
        (lambda f: f.assign(income=np.inf).pdp.sum("income", **INCOME), "not a finite number"),
    ],
)
def test_bad_requests_are_refused(call, message):
    with pytest.raises(pdp.PdpError, match=message):
        call(PEOPLE)


def test_by_and_order_by_need_value():
    cal = pdp.calibrate(pdp.GaussianGroup(size=2, correlation=0, bounds=(0, 1)), pdp.Sum())
    with pytest.raises(pdp.QueryError, match="value="):
        cal.release(PEOPLE, by="household")


def test_values_outside_the_bounds_are_refused_unless_clamped():
    couple = PEOPLE[PEOPLE.household == "b"]
    model = pdp.GaussianGroup(size=3, correlation=0.1, bounds=(0, 100))
    cal = pdp.calibrate(model, pdp.Sum())
    with pytest.raises(pdp.ModelError, match="outside the bounds") as caught:
        cal.release(couple, value="income", by="household")
    assert "250" not in str(caught.value)


def test_a_set_of_models_of_all_groups_is_about_the_whole_frame():
    def blocks(correlation):
        group = pdp.GaussianGroup(size=2, correlation=correlation, bounds=(0.0, 10.0))
        return pdp.Blocks(models=[group], counts=[3])

    frame = pd.DataFrame({"home": [1, 1, 2, 2, 3, 3], "load": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    either = pdp.ModelSet(models=[blocks((0.0, 0.2)), blocks((0.0, 0.4))])
    options = {"groups": "home", "epsilon": 1e6}
    scales = []
    for model in (either, either.models[1]):
        release = frame.pdp.mean("load", model=model, **options)
        assert release.value == pytest.approx(3.5, abs=1e-3)
        scales.append(release.calibration.scale)
    assert scales[0] == pytest.approx(scales[1], rel=1e-9)  # the member that needs more
