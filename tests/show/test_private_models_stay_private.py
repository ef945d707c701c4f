"""The numbers of a private model are nowhere in what the library writes or says."""

import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

RNG = np.random.default_rng(20261116)
ROWS = 24_371
BITS = (RNG.random((ROWS, 1)) < 0.37) ^ (RNG.random((ROWS, 3)) < [0.11, 0.23, 0.31])
WIDE = pd.DataFrame(BITS.astype(int), columns=["ann", "bob", "cyd"])
REALS = pd.DataFrame(
    RNG.normal(size=(ROWS, 3)) @ RNG.normal(size=(3, 3)) + [3.137, -1.713, 0.577],
    columns=["ann", "bob", "cyd"],
)
SIZES = RNG.integers(2, 4, size=400)
LONG = pd.DataFrame({"home": np.repeat(np.arange(400), SIZES)})
LONG["day"] = LONG.groupby("home").cumcount()
COMMON = np.repeat(RNG.normal(size=400), SIZES)
LONG["load"] = 7.31 * COMMON + 5.77 * RNG.normal(size=len(LONG)) + 51.3
LONG["ill"] = (COMMON + RNG.normal(size=len(LONG)) > 0.613).astype(int)
EVEN = LONG.groupby("home").head(2)

WIDE_FITS = {
    "joint": (pdp.TableEstimator(), WIDE),
    "tree": (pdp.TableEstimator(structure="chow-liu"), WIDE),
    "blocks": (pdp.TableEstimator(structure="blocks"), WIDE.assign(dan=RNG.integers(0, 2, ROWS))),
    "sampled table": (
        pdp.TableEstimator(confidence=0.9, domains=dict.fromkeys(WIDE.columns, (0, 1))),
        WIDE,
    ),
    "gaussian": (pdp.GaussianEstimator(bounds=(-20, 20)), REALS),
    "sampled gaussian": (pdp.GaussianEstimator(bounds=(-20, 20), confidence=0.9), REALS),
}
COLUMNS = {"value": "load", "by": "home"}
LONG_FITS = {
    "group": (pdp.GroupEstimator(**COLUMNS, bounds=(0, 100)), EVEN),
    "groups": (pdp.GroupEstimator(**COLUMNS, bounds=(0, 100), confidence=0.9), LONG),
    "binary": (pdp.GroupEstimator(value="ill", by="home", kind="binary"), EVEN),
    "binaries": (pdp.GroupEstimator(value="ill", by="home", kind="binary"), LONG),
    "chain": (pdp.MarkovChainEstimator(value="ill", by="home", order_by="day"), EVEN),
    "chains": (
        pdp.MarkovChainEstimator(value="ill", by="home", order_by="day", initial="estimated"),
        LONG,
    ),
    "series": (pdp.GaussianSeriesEstimator(**COLUMNS, order_by="day", bounds=(0, 100)), LONG),
}
PUBLIC = {
    "bounds", "domains", "states", "length", "size", "confidence", "rows", "noise_scale",
    "categories",
}  # fmt: skip


def numbers_of(model):
    """Yield every secret number of a model: its parameters, and those of its parts."""

    def flat(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key not in PUBLIC | {"schema", "type", "names", "provenance"}:
                    yield from flat(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from flat(inner)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)

    for inner in model.inner_models:
        yield from numbers_of(inner)
    if not isinstance(model, pdp.Blocks | pdp.ModelSet):  # how many blocks there are is public
        yield from flat(model.parameters())


def spellings(number):
    """Return how a number may be written, wherever four digits or more tell it from others."""
    ways = {repr(number), str(np.float64(number)), f"{number:.4f}", f"{100 * number:.3f}"}
    ways |= {f"{number:.{digits}g}" for digits in (4, 5, 6, 8, 12)}
    if number == int(number):
        ways |= {str(int(number)), f"{int(number):,}"}
    return {way for way in ways if len(re.sub(r"^0\.0*|[^0-9]", "", way)) >= 4}


def found_in(text, model):
    """Return the secret numbers that stand in a text, as whole numbers of the text."""
    written = set(re.findall(r"\d[\d,]*\.?\d*(?:e[-+]?\d+)?", text))
    written |= {one.rstrip(",.") for one in written}
    return {
        way
        for number in numbers_of(model)
        for way in spellings(abs(number))
        if way.lstrip("-") in written
    }


def everything_said(model, frame, query, tmp_path, **columns):
    """Collect all texts that the library makes from a model, errors and warnings included."""
    rows = len(frame) if not columns else 1
    texts = [repr(model), str(model), json.dumps(model.to_dict())]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cal = pdp.calibrate(model, query, epsilon=0.9, rows=rows)
        joint = pdp.calibrate(model, [query, query], epsilon=0.9, rows=rows)
        release = cal.release(frame, **columns)
        ledger = pdp.Ledger(model, epsilon=1.0, path=tmp_path / "ledger.json")
        cal.release(frame, ledger=ledger, **columns)
        curve = pdp.sensitivity_curve(lambda _: model, query, values=[1], rows=rows)
        leak = pdp.leakage(model, query, scale=cal.scale, rows=rows)
    assert any(issubclass(one.category, pdp.PrivacyLeakWarning) for one in caught)
    texts += [str(one.message) for one in caught]
    for one in (cal, cal.leakage, cal.leakage.witness, leak, joint, joint.leakage, release, ledger,
                curve, cal.contributions):  # fmt: skip
        texts += [repr(one), str(one)]
    texts += [
        cal.to_json(),
        joint.to_json(),
        release.to_json(),
        json.dumps(leak.to_dict()),
        pdp.explain(cal),
        (tmp_path / "ledger.json").read_text(),
        repr(ledger.history),
        curve.to_frame().to_csv(),
    ]
    attempts = [
        lambda: cal.release(frame, ledger=ledger, **columns),
        lambda: pdp.calibrate(model, pdp.Sum(over=["nobody"])),
        lambda: pdp.calibrate(model, pdp.Custom(function=max)),
        lambda: pdp.calibrate(model, query, epsilon=-1.0),
        lambda: pdp.Calibration.from_json(cal.to_json()),
        lambda: pdp.Ledger.open(tmp_path / "ledger.json"),
        lambda: pdp.verify(_claiming(cal, 0.01)),
        lambda: pdp.leakage(model, query, adversaries=pdp.Adversaries.exactly("nobody")),
        lambda: cal.release({"nobody": 1}),
        lambda: cal.release_rows(frame.assign(ann="x")),
        lambda: model.learned_with(1.0),
        lambda: pdp.paper.chain_rule(model, query, scale=1.0),
    ]
    refused = 0
    for attempt in attempts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                attempt()
            except (ValueError, TypeError) as error:
                refused += 1
                texts += [str(error), repr(error), str(error.__cause__), str(error.__context__)]
    assert refused >= 9
    return "\n".join(texts)


def _claiming(cal, epsilon):
    return pdp.Calibration(
        model=cal.model, query=cal.query, adversaries=cal.adversaries, epsilon=epsilon,
        scale=cal.scale, leakage=cal.leakage, rows=cal.rows,
    )  # fmt: skip


def private_fit(estimator, frame, *, numbers):
    """What is learned from private rows, with at least some numbers that could give it away."""
    model = frame.pdp.fit(estimator).model_
    assert model.provenance == "private"
    least = 1 if isinstance(estimator, pdp.MarkovChainEstimator) else numbers  # a diameter alone
    assert len(set(numbers_of(model))) >= least
    return model


@pytest.mark.parametrize("kind", WIDE_FITS)
def test_nothing_of_a_private_wide_fit_is_written(kind, tmp_path):
    estimator, frame = WIDE_FITS[kind]
    model = private_fit(estimator, frame, numbers=6)
    query = pdp.Sum(clamp=model.is_continuous)
    text = everything_said(model, frame, query, tmp_path) + repr(estimator.fit(frame))
    assert not found_in(text, model)


@pytest.mark.parametrize("kind", LONG_FITS)
def test_nothing_of_a_private_long_fit_is_written(kind, tmp_path):
    estimator, frame = LONG_FITS[kind]
    model = private_fit(estimator, frame, numbers=2)
    columns = {"value": estimator.value, "by": "home", "order_by": "day"}
    query = pdp.Sum(clamp=model.is_continuous)
    text = everything_said(model, frame, query, tmp_path, **columns)
    assert not found_in(text + repr(estimator.fit(frame)), model)


def test_the_search_finds_what_a_public_model_says():
    """The same texts of a public model do hold its numbers: the search above is not blind."""
    for estimator, frame in (WIDE_FITS["joint"], WIDE_FITS["gaussian"], LONG_FITS["chain"]):
        model = clone_with_source(estimator).fit(frame).model_
        assert found_in(json.dumps(model.to_dict()), model)
    gaussian = clone_with_source(WIDE_FITS["gaussian"][0]).fit(REALS).model_
    knows = pdp.Adversaries.knowing(at_least=1)
    assert found_in(repr(pdp.leakage(gaussian, pdp.Sum(), adversaries=knows)), gaussian)


def clone_with_source(estimator):
    return type(estimator)(**(estimator.get_params() | {"source": "public"}))


def test_what_a_private_table_makes_one_believe_is_not_printed():
    model = WIDE.pdp.fit(pdp.TableEstimator()).model_
    beliefs = pdp.posterior(model, pdp.Sum(), scale=1.0, target="ann", output=2.0)
    assert "withheld" in repr(beliefs)
    assert sum(beliefs.prior.values()) == pytest.approx(1.0)
    private_law = {repr(p) for p in beliefs.prior.values()}
    assert not any(p in repr(beliefs) for p in private_law)
    with pytest.warns(pdp.PrivacyLeakWarning):
        leak = pdp.leakage(model, pdp.Sum())
    assert leak.to_dict()["witness"] is None
    assert "withheld" in repr(leak)
    assert leak.witness.target in model.names  # for those who hold the model it is there


@pytest.mark.parametrize(
    ("estimator", "frame"),
    [
        (pdp.GaussianEstimator(covariance="empirical", bounds=(-99, 99), source="public"),
         REALS.assign(dan=lambda f: f["ann"] + f["bob"])),
        (pdp.GaussianSeriesEstimator(value="load", bounds=(0, 9), source="public"),
         pd.DataFrame({"load": [3.217, 5.891] * 6})),
        (pdp.GroupEstimator(by="home", value="load", bounds=(0, 9), source="public"),
         pd.DataFrame({"home": [1, 1, 2, 2], "load": [3.217, 3.217, 5.891, 5.891]})),
        (pdp.TableEstimator(domains={"ann": [0]}, source="public"), WIDE),
        (pdp.TableEstimator(bins={"ann": [0, 0.5]}, source="public"), REALS),
        (pdp.MarkovChainEstimator(value="load", states=[0, 1], source="public"),
         pd.DataFrame({"load": [3.217, 0]})),
    ],
)  # fmt: skip
def test_fits_that_fail_say_no_number_of_the_rows(estimator, frame):
    with pytest.raises(pdp.ModelError) as caught:
        estimator.fit(frame)
    told = [float(one) for one in re.findall(r"\d+\.?\d*(?:e[-+]?\d+)?", str(caught.value))]
    public = {0.0, 0.5, 1.0}
    assert set(told) <= public
    assert caught.value.__cause__ is None
    assert math.isfinite(sum(told))
