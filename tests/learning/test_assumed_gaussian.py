"""A correlation means jointly Gaussian values: said, asked for, or refused, by type alone."""

import warnings

import duckdb
import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom

import pdp_calibrate as pdp
from pdp_calibrate.accessor import PdpAccessor
from pdp_calibrate.show.words import assumptions
from tests.support.cli_runs import fine, refused
from tests.support.plans import plan_text

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

SAID = "assuming jointly Gaussian values"
HOMES = {"groups": "home", "bounds": (0, 1), "correlation": (0, 0.4)}
VALIDATOR = jsonschema.Draft202012Validator(pdp.json_schema())


def homes(values, **changes):
    return pd.DataFrame({"home": np.repeat([1, 2, 3, 4], 2), "x": values}, **changes)


def yes_no(size=8, share=0.12, alike=0.4):
    """Return a group that is all alike with probability 0.4, and independent otherwise.

    Every pair has correlation 0.4.
    """
    counts = (1 - alike) * binom.pmf(np.arange(size + 1), size, share)
    counts[[0, size]] += alike * (1 - share), alike * share
    return pdp.BinaryGroup(count_probabilities=counts)


def test_what_yes_no_values_leak_at_the_noise_of_gaussian_ones():
    gaussian = pdp.GaussianGroup(size=8, correlation=(0, 0.4), bounds=(0, 1))
    scale = pdp.calibrate(gaussian, pdp.Sum(clamp=True), epsilon=1.0).scale
    assert scale == pytest.approx(3.8, rel=1e-6)
    assert pdp.leakage(yes_no(), pdp.Sum(), scale=scale).value == pytest.approx(1.509, abs=5e-4)
    assert pdp.calibrate(yes_no(), pdp.Sum(), epsilon=1.0).scale == pytest.approx(5.675, abs=5e-3)


DISCRETE = {
    "boolean": homes([True, False] * 4),
    "nullable boolean": homes(pd.array([True, False] * 4, dtype="boolean")),
    "text": homes(["no", "yes"] * 4),
    "category": homes(pd.Categorical([0, 1] * 4)),
    "polars boolean": pl.DataFrame({"home": [1, 1, 2, 2], "x": [True, False] * 2}),
    "polars enum": pl.DataFrame(
        {"home": [1, 1], "x": ["no", "yes"]}, schema_overrides={"x": pl.Enum(["no", "yes"])}
    ),
    "duckdb boolean": duckdb.sql("select 1 as home, true as x union all select 1, false"),
}


@pytest.mark.parametrize("kind", DISCRETE)
def test_discrete_types_are_refused_with_the_way_out(kind):
    frame = DISCRETE[kind]
    for assume in (None, "gaussian"):
        with pytest.raises(pdp.ModelError, match="column x must hold numbers") as caught:
            PdpAccessor(frame).mean("x", **HOMES, assume=assume, epsilon=1.0)
        assert "yes" not in str(caught.value).replace("yes/no", "")
        for way in ("kind='binary'", "table", "any dependence", "pdp.Unknown"):
            assert way in str(caught.value)
    model = pdp.GaussianGroup(size=2, correlation=(0, 0.4), bounds=(0, 1))
    with pytest.raises(pdp.ModelError, match=r"column x must hold numbers .*pdp\.Unknown"):
        pdp.calibrate(model, pdp.Sum(clamp=True)).release(frame, value="x", by="home")
    with pytest.raises(pdp.ModelError, match=r"column x must hold numbers .*kind='binary'"):
        pdp.GroupEstimator(by="home", value="x", bounds=(0, 1)).fit(frame)
    with pytest.raises(pdp.ModelError, match=r"column x must hold numbers .*MarkovChainEstimator"):
        pdp.GaussianSeriesEstimator(by="home", value="x", order_by="x", bounds=(0, 1)).fit(frame)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "Int16"])
def test_whole_numbers_need_a_word(dtype):
    frame = homes(pd.array([0, 1] * 4, dtype=dtype))
    with pytest.raises(pdp.ModelError, match=r"assume='gaussian'.*kind='binary'") as caught:
        frame.pdp.sum("x", **HOMES, epsilon=1.0)
    other = homes(pd.array([40, 90] * 4, dtype=dtype))
    with pytest.raises(pdp.ModelError) as again:  # whatever the values are
        other.pdp.sum("x", **HOMES, epsilon=1.0)
    assert str(again.value) == str(caught.value)
    found = frame.pdp.sum("x", **HOMES, assume="gaussian", epsilon=1.0)
    assert found.calibration.scale == pytest.approx(1.4, rel=1e-6)
    same = frame.astype({"x": "float64"}).pdp.sum("x", **HOMES, epsilon=1.0)
    assert same.calibration.scale == found.calibration.scale
    with pytest.raises(pdp.ModelError, match=r"stated domain.*kind='binary'"):
        frame.pdp.sum("x", **HOMES, assume="gaussian", domain=[0, 1], epsilon=1.0)
    assert (
        frame.pdp.sum("x", groups="home", bounds=(0, 1), epsilon=1.0).value is not None
    )  # any dependence
    with pytest.raises(pdp.QueryError, match="only be 'gaussian'"):
        frame.pdp.sum("x", **HOMES, assume="normal")
    with pytest.raises(pdp.QueryError, match="give both"):
        frame.pdp.sum("x", groups="home", bounds=(0, 1), assume="gaussian", epsilon=1.0)


def test_a_series_names_chains():
    frame = pd.DataFrame({"day": range(5), "x": [0, 1, 1, 0, 1]})
    asked = {"order_by": "day", "bounds": (0, 1), "correlation": 0.3}
    with pytest.raises(pdp.ModelError, match=r"assume='gaussian'.*MarkovChainEstimator"):
        frame.pdp.sum("x", **asked, epsilon=1.0)
    frame.pdp.sum("x", **asked, assume="gaussian", epsilon=1.0)


def test_a_model_that_is_called_gaussian_takes_whole_numbers_but_no_booleans():
    model = pdp.Gaussian(covariance=np.eye(2), bounds=(0, 1), names=["a", "b"])
    cal = pdp.calibrate(model, pdp.Sum(clamp=True))
    wide = pd.DataFrame({"a": [0, 1], "b": [1, 1]})
    cal.release(wide)
    with pytest.raises(pdp.ModelError, match=r"column b must hold numbers .*TableEstimator"):
        cal.release(wide.astype({"b": bool}))
    with pytest.raises(pdp.ModelError, match="column b must hold numbers"):
        cal.release_rows(wide.astype({"b": bool}))
    # A block of another family may hold booleans.
    table = pdp.JointTable(probabilities=[0.5, 0.5], domains=[[False, True]], names=["c"])
    both = pdp.Blocks(models=[model, table])
    pdp.calibrate(both, pdp.Sum(clamp=True)).release(wide.assign(c=[True, False]))


def test_every_output_says_it(tmp_path):
    frame = homes([0.1, 0.3, 0.2, 0.9, 0.4, 0.5, 0.6, 0.6])
    release = frame.pdp.mean("x", **HOMES, epsilon=1.0)
    cal = release.calibration
    joint = pdp.calibrate(cal.model, [pdp.Sum(clamp=True), pdp.Mean(clamp=True)])
    ledger = pdp.Ledger(cal.model, epsilon=1.0)
    for subject in (cal, release, joint, ledger):
        assert SAID in pdp.explain(subject)
    for subject in (cal, release, joint):
        assert "jointly Gaussian values" in subject._repr_html_()
        assert "jointly Gaussian values" in subject.to_json()
        VALIDATOR.validate(subject.to_dict())
    assert SAID in pdp.explain(pdp.leakage(cal.model, pdp.Sum(clamp=True), scale=1.0))
    assert any(SAID in one for one in assumptions(cal.model, cal.adversaries, clamped=True))
    pdp.report(release, tmp_path / "report.html")
    assert SAID in " ".join((tmp_path / "report.html").read_text(encoding="utf-8").split())
    # And nothing that assumes none does.
    plain = pdp.calibrate(yes_no(), pdp.Sum())
    free = frame.pdp.mean("x", groups="home", bounds=(0, 1), epsilon=1.0)
    for subject in (plain, free):
        assert "Gaussian values" not in pdp.explain(subject) + subject.to_json()


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(6)
    home = np.repeat(np.arange(60), 3)
    income = 100 * rng.integers(100, 900, 180)
    sick = ((rng.random(60) < 0.5)[home] ^ (rng.random(180) < 0.2)).astype(int)
    people = pd.DataFrame({"household": home, "income": income, "sick": sick, "old": sick == 1})
    people.to_csv("people.csv", index=False)


@pytest.mark.usefixtures("files")
def test_the_command_line_asks_refuses_and_says_it():
    about = "--groups household --bounds income=0:100000 --correlation 0:0.4"
    asked = f'people.csv -q "mean(income)" {about}'
    for line in (
        f"calibrate {asked} -e 1",
        f"release {asked} -e 1",
        f"leakage {asked} --scale 1000",
    ):
        assert "--assume gaussian" in refused(line)
        assert "jointly Gaussian values" in fine(f"{line} --assume gaussian").out
        found = fine(f"{line} --assume gaussian --json").json
        assert "jointly Gaussian values" in str(found)
        VALIDATOR.validate(found)
    fit = f"fit people.csv --kind groups --value income {about}"
    assert "--assume gaussian" in refused(fit)
    assert "jointly Gaussian values" in fine(f"{fit} --assume gaussian -o model.json").out
    fine('release people.csv -q "mean(income)" -e 1 --groups household --model model.json')
    for column in ("sick", "old"):
        line = f'calibrate people.csv -q "mean({column})" -e 1 --groups household --bounds 0:1'
        message = refused(f"{line} --correlation 0:0.4")
        assert "--kind groups without --bounds" in message
        fine(line)  # any dependence
    line = 'calibrate people.csv -q "mean(sick)" -e 1 --groups household --bounds 0:1'
    line += " --correlation 0.4"
    assert "stated domain" in refused(f"{line} --assume gaussian --domain sick=0,1")
    assert "only be 'gaussian'" in refused(f"{line} --assume normal")
    assert "give both" in refused(f"{line.replace('--correlation 0.4', '')} --assume gaussian")


@pytest.mark.usefixtures("files")
def test_plans_ask_and_say_it(tmp_path):
    plan = plan_text(
        {"query": "mean(income)", "epsilon": 0.5},
        data={"file": "people.csv", "groups": "household"},
        model={"bounds": {"income": [0, 100_000]}, "correlation": [0, 0.4], "assume": "gaussian"},
        budget={"epsilon": 1.0},
    )
    (tmp_path / "plan.toml").write_text(plan)
    assert "jointly Gaussian values" in fine("plan plan.toml").out
    (tmp_path / "plan.toml").write_text(plan.replace('assume = "gaussian"', ""))
    assert "assume='gaussian'" in refused("plan plan.toml")


@pytest.mark.usefixtures("files")
def test_fitting_groups_on_the_command_line_warns():
    ran = fine("fit people.csv --kind groups --groups household --value sick --bounds 0:1 --public")
    assert "only two values" in ran.err
    assert "kind='binary'" in ran.err


def test_an_error_without_bounds_names_the_other_kind_by_type():
    for values in ([0, 1] * 4, [True, False] * 4, [40, 90] * 4):
        with pytest.raises(pdp.ModelError, match=r"bounds=.*kind='binary'"):
            pdp.GroupEstimator(by="home", value="x").fit(homes(values))
    with pytest.raises(pdp.ModelError, match=r"bounds=\.$"):
        pdp.GroupEstimator(by="home", value="x").fit(homes([0.0, 1.0] * 4))
    with pytest.raises(pdp.ModelError, match=r"bounds=.*MarkovChainEstimator"):
        pdp.GaussianSeriesEstimator(by="home", value="x").fit(homes([0, 1] * 4))


def groups(draw, *, number=400, size=3, seed=8):
    rng = np.random.default_rng(seed)
    home = np.repeat(np.arange(number), size)
    return pd.DataFrame({"home": home, "x": draw(rng, home)})


SHAPES = {
    "two values": lambda rng, home: (
        (rng.random(home.max() + 1)[home] < 0.5).astype(int) * (rng.random(len(home)) < 0.9)
    ),
    "many zeros": lambda rng, home: rng.normal(size=len(home)) * (rng.random(len(home)) < 0.3),
    "skewed": lambda rng, home: np.exp(rng.normal(size=len(home)) + rng.normal(size=400)[home]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas, duckdb.from_df])
def test_fits_warn_of_values_that_are_plainly_not_gaussian(shape, engine):
    frame = groups(SHAPES[shape])
    bounds = (0, 1) if shape == "two values" else (-99, 999)
    estimator = pdp.GroupEstimator(by="home", value="x", bounds=bounds, source="public")
    with pytest.warns(pdp.ModelFitWarning, match=r"column x .*not Gaussian.*kind='binary'") as seen:
        estimator.fit(engine(frame))
    assert seen[0].filename == __file__
    series = frame.assign(t=range(len(frame)))
    estimator = pdp.GaussianSeriesEstimator(value="x", order_by="t", bounds=bounds, source="public")
    with pytest.warns(pdp.ModelFitWarning, match=r"not Gaussian.*MarkovChainEstimator") as seen:
        estimator.fit(engine(series))
    assert seen[0].filename == __file__


def test_learning_under_differential_privacy_does_not_test_the_rows():
    """A warning would tell something about them that no noise hides."""
    frame = groups(SHAPES["two values"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", pdp.ModelFitWarning)
        pdp.GroupEstimator(by="home", value="x", bounds=(0, 1), epsilon=50.0, max_group_size=3).fit(
            frame
        )
        pdp.GaussianSeriesEstimator(
            value="x", by="home", bounds=(0, 1), epsilon=50.0, max_length=3
        ).fit(frame)


@pytest.mark.parametrize(("number", "size"), [(400, 3), (30, 2), (20, 200)])
def test_gaussian_groups_and_series_are_not_warned_of(number, size):
    """Few large groups that are alike look like a few values: correlated rows count for less."""

    def draw(rng, home):
        return 3 * rng.normal(size=number)[home] + rng.normal(size=len(home))

    for seed in range(5):
        frame = groups(draw, number=number, size=size, seed=seed)
        frame["place"] = frame.groupby("home").cumcount()  # one in a hundred orders seems to matter
        pdp.GroupEstimator(
            by="home", value="x", role="place", bounds=(-99, 99), source="public"
        ).fit(frame)
        steps = np.random.default_rng(seed).normal(size=600)
        walk = np.empty(600)
        walk[0] = steps[0] / np.sqrt(1 - 0.97**2)
        for t in range(1, 600):
            walk[t] = 0.97 * walk[t - 1] + steps[t]
        series = pd.DataFrame({"t": range(600), "x": walk})
        estimator = pdp.GaussianSeriesEstimator(
            value="x", order_by="t", bounds=(-99, 99), source="public"
        )
        estimator.fit(series)
