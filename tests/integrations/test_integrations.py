"""What all adapters share: lazy loading, safe hand-over of scales and budgets, and `wrap`."""

import dataclasses
import importlib
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pdp_calibrate as pdp
from pdp_calibrate import errors
from pdp_calibrate.errors import MissingLibraryError
from pdp_calibrate_integrations import handover
from pdp_calibrate_integrations.wrapping import wrap
from tests.support.adapters import TWINS

STRANGERS = pdp.JointTable(probabilities=[[0.25, 0.25], [0.25, 0.25]], domains=[[0, 1]] * 2)
ADAPTERS = {
    "opendp": "opendp.prelude",
    "diffprivlib": "diffprivlib",
    "pipelinedp": "pipeline_dp",
    "pydp": "pydp",
    "dp_accounting": "dp_accounting",
}


def test_importing_adapters_or_core_loads_no_library():
    adapters = "".join(f"import pdp_calibrate_integrations.{name};" for name in ADAPTERS)
    code = (
        f"import sys, pdp_calibrate as pdp;{adapters}import pdp_calibrate_integrations.wrapping;"
        "twins = pdp.JointTable(probabilities=[[.4, .1], [.1, .4]], domains=[[0, 1]] * 2);"
        "pdp.calibrate(twins, pdp.Sum());"
        "libraries = {'opendp', 'diffprivlib', 'pipeline_dp', 'pydp', 'dp_accounting', 'polars'};"
        "print(sorted(libraries & set(sys.modules)))"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.stdout.strip() == "[]"


def calls(name, cal, ledger):
    """Every entry of an adapter, called as far as the library is needed."""
    adapter = importlib.import_module(f"pdp_calibrate_integrations.{name}")
    given = {"model": TWINS, "epsilon": 1.0}
    return {
        "opendp": [
            lambda: adapter.make_pdp_laplace(None, None, cal),
            lambda: adapter.make_pdp_and_dp_laplace(None, None, cal),
            lambda: adapter.make_pdp_lazyframe(None, None, None, cal),
            adapter.register if name == "opendp" else None,
            lambda: adapter.then_pdp_laplace(cal),
        ],
        "diffprivlib": [
            lambda: adapter.laplace(cal, ledger=ledger),
            lambda: adapter.with_budget(sum, ledger=ledger, **given),
        ],
        "pipelinedp": [
            lambda: adapter.laplace(cal, ledger=ledger),
            lambda: adapter.aggregation(cal, ledger=ledger),
            lambda: adapter.budget_accountant(TWINS, epsilon=1.0, ledger=ledger),
        ],
        "pydp": [
            lambda: adapter.laplace(cal, ledger=ledger),
            lambda: adapter.bounded_sum(cal, ledger=ledger),
            lambda: adapter.with_budget(sum, ledger=ledger, **given),
        ],
        "dp_accounting": [lambda: adapter.laplace_event(cal)],
    }[name]


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_missing_library_says_how_to_install_it(name, monkeypatch):
    top = ADAPTERS[name].split(".")[0]
    loaded = [module for module in sys.modules if module.split(".")[0] == top]
    for module in {top, *loaded}:
        monkeypatch.setitem(sys.modules, module, None)
    cal, ledger = pdp.calibrate(TWINS, pdp.Sum()), pdp.Ledger(TWINS, epsilon=5.0)
    extra = name.replace("_", "-")
    none_here = extra in errors._LAST_PYTHON and sys.version_info[:2] > errors._LAST_PYTHON[extra]
    said = "has no release for Python" if none_here else rf"pip install .*\[{extra}\]"
    for call in calls(name, cal, ledger):
        with pytest.raises(MissingLibraryError, match=said) as caught:
            call()
        assert isinstance(caught.value, ImportError)
        assert isinstance(caught.value, pdp.PdpError)
    assert ledger.history == ()


@given(scale=st.floats(1e-9, 1e9), width=st.floats(1e-6, 1e6))
@settings(deadline=None, max_examples=80)
def test_the_scale_handed_over_is_never_below_the_calibrated_one(scale, width):
    table = pdp.JointTable(probabilities=[0.5, 0.5], domains=[[0.0, width]])
    cal = dataclasses.replace(pdp.calibrate(table, pdp.Sum()), scale=scale)
    for used in (None, width / 3, 7.1 * width):
        handed = handover.laplace_parameters(cal, sensitivity_used=used)
        assert scale <= handed.sensitivity / handed.epsilon <= scale * (1 + 1e-14)
        assert handed.sensitivity == (width if used is None else used)


@pytest.mark.parametrize("slack", [1e-15, handover.GRID_ROUNDING, 1e-6, 0.01])
@pytest.mark.parametrize(
    "model",
    [
        TWINS,
        STRANGERS,
        pdp.BinaryGroup(count_probabilities=[0.3, 0.1, 0.1, 0.5]),
        pdp.Unknown(size=3, domain=[0, 1]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_slack_below_epsilon_is_proved_and_costs_little(model, slack):
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=0.8)
    slackened = handover.with_slack(cal, slack)
    assert pdp.leakage(model, pdp.Sum(), scale=slackened.scale).value + slack <= 0.8 + 1e-16
    assert cal.scale <= slackened.scale <= cal.scale * (1 + 20 * slack + 1e-12)
    assert slackened.epsilon == cal.epsilon


def test_slack_that_no_scale_gives_raises():
    cal = pdp.calibrate(TWINS, pdp.Sum(), epsilon=1.0)
    with pytest.raises(pdp.CalibrationError, match="slack"):
        handover.with_slack(cal, 1.0)


def test_what_cannot_be_added_up_by_tuple_is_refused():
    histogram = pdp.calibrate(TWINS, pdp.Histogram(), epsilon=1.0)
    largest = pdp.calibrate(TWINS, pdp.Custom(function=max), epsilon=1.0)
    for cal in (histogram, largest):
        with pytest.raises(pdp.UnsupportedQueryError, match="by tuple"):
            handover.contribution_range(cal)
    weighted = pdp.calibrate(TWINS, pdp.Linear(weights=[-2.0, 3.0]), epsilon=1.0)
    assert handover.contribution_range(weighted) == (-2.0, 3.0)


def test_wrap_hands_over_the_budget_of_the_model():
    def double(number, *, eps):
        """Twice."""
        return 2 * number, eps

    for neighbours, relation in (
        ("substitution", "substitution"),
        ("add-remove", "add-remove"),
        ("unknown", "add-remove"),
    ):
        wrapped = wrap(
            double, model=TWINS, epsilon=1.0, epsilon_argument="eps", neighbours=neighbours
        )
        expected = pdp.dp_budget(TWINS, epsilon=1.0, neighbours=relation)
        assert wrapped(4) == (8, expected)
        assert wrapped.dp_epsilon == expected
        assert (wrapped.__name__, wrapped.__doc__) == ("double", "Twice.")
    default = wrap(double, model=TWINS, epsilon=1.0, epsilon_argument="eps")
    assert default.dp_epsilon == expected
    whole = wrap(
        double, model=TWINS, epsilon=1.0, epsilon_argument="eps", neighbours="substitution"
    )
    assert whole.dp_epsilon == pytest.approx(2 * expected)


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove", "unknown"])
def test_what_a_wrapped_function_leaks_stays_below_epsilon(neighbours):
    """A count whose author thinks of substitution, or of add/remove, as declared."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        model = pdp.JointTable(
            probabilities=rng.dirichlet([0.4] * 4).reshape(2, 2), domains=[[0, 1]] * 2
        )
        count = wrap(lambda epsilon: 1 / epsilon, model=model, epsilon=1.3, neighbours=neighbours)
        assert pdp.leakage(model, pdp.Sum(), scale=count()).value <= 1.3 + 1e-12


def test_wrap_charges_first_and_refuses_without_calling():
    ledger = pdp.Ledger(TWINS, epsilon=1.5)
    entries_at_call = []

    @wrap(model=TWINS, epsilon=1.0, neighbours="add-remove", ledger=ledger)
    def release(fail, epsilon):
        entries_at_call.append(len(ledger.history))
        if fail:
            raise RuntimeError(epsilon)
        return epsilon

    with pytest.raises(RuntimeError):
        release(fail=True)
    assert entries_at_call == [1]
    (entry,) = ledger.history
    assert entry.dp_epsilon == pytest.approx(2 * release.dp_epsilon)  # counted by substitution
    assert ledger.spent == pytest.approx(1.0, rel=1e-5)
    assert ledger.spent <= 1.0
    before = ledger.history
    with pytest.raises(pdp.BudgetExceededError):
        release(fail=False)
    assert entries_at_call == [1]
    assert ledger.history == before


def test_wrap_refuses_what_it_cannot_keep():
    def count(answer, epsilon):
        return answer + epsilon

    with pytest.raises(pdp.PdpError, match="epsilon_argument"):
        wrap(count, model=TWINS, epsilon=1.0, epsilon_argument="eps")
    with pytest.raises(pdp.PdpError, match="set by the wrapper"):
        wrap(count, model=TWINS, epsilon=1.0)(3, epsilon=9.0)
    with pytest.raises(pdp.PdpError, match="neighbours must be"):
        wrap(count, model=TWINS, epsilon=1.0, neighbours="bounded")
    with pytest.raises(pdp.PdpError, match="something to call"):
        wrap(3, model=TWINS, epsilon=1.0)
    with pytest.raises(pdp.LedgerError, match="another model"):
        wrap(count, model=TWINS, epsilon=1.0, ledger=pdp.Ledger(STRANGERS))
    with pytest.raises(pdp.PdpError, match="positive and finite"):
        wrap(count, model=TWINS, epsilon=math.inf)


def test_compiled_functions_and_keyword_catchers_can_be_wrapped():
    assert wrap(dict, model=TWINS, epsilon=1.0)(a=1)["epsilon"] > 0
    with pytest.raises(pdp.PdpError, match="takes no argument"):
        wrap(lambda epsilon, /: epsilon, model=TWINS, epsilon=1.0)


def test_a_private_model_warns():
    private = pdp.JointTable(
        probabilities=TWINS.probabilities, domains=[[0, 1]] * 2, provenance="private"
    )
    with pytest.warns(pdp.PrivacyLeakWarning, match="private rows") as caught:
        wrap(lambda epsilon: epsilon, model=private, epsilon=1.0)
    assert len(caught) == 1
