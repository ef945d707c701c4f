"""Conversions between μ, (ε, δ) and ρ: on the right side, and close, against 60 digits."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.gaussian_dp import (
    delta_of,
    drawn_excess,
    epsilon_of,
    mu_of,
    mu_of_rho,
    rho_of,
)
from pdp_calibrate.errors import PdpError

TABLE = {
    (1.0, 1e-6): 0.236704380663,
    (1.0, 1e-5): 0.268051123211,
    (0.5, 1e-6): 0.124106149031,
    (2.0, 1e-6): 0.448334740395,
    (1.0, 1e-9): 0.181974807295,
}


def exact_delta(mu, epsilon):
    """δ_μ(ε) from its definition, with as many digits more as it cancels."""
    with mpmath.workdps(70 + 2 * int(abs(math.log10(mu)))):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        above = mpmath.erfc((epsilon / mu - mu / 2) / mpmath.sqrt(2))
        below = mpmath.erfc((epsilon / mu + mu / 2) / mpmath.sqrt(2))
        return (above - mpmath.exp(epsilon) * below) / 2


def grid(number, seed):
    """Pairs (μ, ε) of every size whose δ lies between 1e-300 and nearly 1."""
    draws = np.random.default_rng(seed)
    for _ in range(number):
        mu = 10 ** draws.uniform(-14, 3)
        epsilon = mu * (draws.uniform(-7, 36.9) + mu / 2)
        yield mu, epsilon if epsilon >= 0 else draws.random() * mu


@pytest.mark.parametrize("seed", range(4))
def test_delta_is_rounded_up_and_close(seed):
    for mu, epsilon in grid(150, seed):
        found, truth = delta_of(mu, epsilon), exact_delta(mu, epsilon)
        assert found >= truth, (mu, epsilon)
        assert found <= truth * (1 + 2e-13) + 1e-322, (mu, epsilon)


@pytest.mark.parametrize("case", TABLE)
def test_the_table_of_mu_to_twelve_digits(case):
    assert round(mu_of(*case), 12) == TABLE[case]


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    list(
        itertools.product(
            [0.0, 1e-12, 1e-3, 0.1, 1.0, 30.0, 1e4], [1e-300, 1e-60, 1e-12, 1e-3, 0.9]
        )
    ),
)
def test_mu_is_the_largest_within(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 1e-12), epsilon) > delta
    assert delta_of(math.nextafter(mu, 9e9), epsilon) > delta


@pytest.mark.parametrize(
    ("mu", "delta"),
    list(itertools.product([1e-9, 1e-3, 0.2, 1.0, 7.0, 60.0], [1e-300, 1e-60, 1e-12, 1e-3, 0.3])),
)
def test_epsilon_is_the_smallest_that_holds(mu, delta):
    epsilon = epsilon_of(mu, delta)
    if epsilon == 0:
        assert exact_delta(mu, 0) <= delta
    else:
        assert exact_delta(mu, epsilon) <= delta
        assert exact_delta(mu, epsilon * (1 - 1e-11)) > delta


def test_epsilon_and_mu_undo_each_other():
    for epsilon, delta in TABLE:
        back = epsilon_of(mu_of(epsilon, delta), delta)
        assert back <= epsilon
        assert back == pytest.approx(epsilon, rel=1e-12)


def test_dp_accounting_agrees():
    accounting = pytest.importorskip("dp_accounting")
    mechanism = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    for mu, epsilon in itertools.product([0.05, 0.3, 1.0, 4.0], [0.0, 0.1, 1.0, 5.0]):
        theirs = mechanism.GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
        assert delta_of(mu, epsilon) == pytest.approx(theirs, rel=1e-8, abs=1e-15)
    for mu, delta in itertools.product([0.05, 0.3, 1.0, 4.0], [1e-10, 1e-6, 1e-2]):
        theirs = accounting.get_epsilon_gaussian(1 / mu, delta, tol=1e-10)
        assert epsilon_of(mu, delta) == pytest.approx(theirs, rel=1e-7, abs=1e-9)


@given(st.floats(1e-150, 1e150))
def test_rho_up_and_mu_down(value):
    with mpmath.workdps(60):
        assert rho_of(value) >= mpmath.mpf(value) ** 2 / 2
        assert mu_of_rho(value) ** mpmath.mpf(2) <= 2 * mpmath.mpf(value)
    assert rho_of(value) == pytest.approx(value * (value / 2), rel=1e-15)
    assert mu_of_rho(value) == pytest.approx(math.sqrt(value) * math.sqrt(2), rel=1e-15)
    assert mu_of_rho(rho_of(value)) >= value


def test_rho_at_the_ends_of_the_floats():
    assert rho_of(0.0) == mu_of_rho(0.0) == 0.0
    assert rho_of(math.inf) == mu_of_rho(math.inf) == math.inf
    assert rho_of(1e-300) > 0
    assert rho_of(1e300) == math.inf
    assert mu_of_rho(5e-324) > 0


@given(st.floats(1e-3, 20), st.floats(0, 30), st.floats(0, 3))
@settings(deadline=None, max_examples=60)
def test_delta_falls_with_epsilon_and_grows_with_mu(mu, epsilon, more):
    here = delta_of(mu, epsilon)
    assert delta_of(mu, epsilon + more) <= here * (1 + 1e-12) + 1e-321
    assert delta_of(mu + more, epsilon) >= here * (1 - 1e-12) - 1e-321


def test_delta_at_negative_epsilon_is_a_hockey_stick_too():
    for mu, epsilon in [(0.3, -0.5), (2.0, -3.0), (1e-6, -1e-6), (1e-9, -40.0)]:
        with mpmath.workdps(60):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            truth = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
            assert truth <= delta_of(mu, epsilon) <= truth * (1 + 2e-13)


@pytest.mark.parametrize("seed", range(10))
def test_laplace_beside_gaussian_covers_the_pair(seed):
    """Randomised response stands for the pure release: the worst one, and the pair's δ is a sum."""
    rng = np.random.default_rng(seed)
    mu, spent, epsilon = rng.uniform(0.1, 2), rng.uniform(0.01, 1.5), rng.uniform(0, 3)
    high = 1 / (1 + math.exp(-spent))
    pair = high * exact_delta_any(mu, epsilon - spent)
    pair += (1 - high) * exact_delta_any(mu, epsilon + spent)
    assert pair <= delta_of(mu, epsilon - spent)


def exact_delta_any(mu, epsilon):
    with mpmath.workdps(50):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2))


def test_edges():
    assert delta_of(0.0, 0.0) == 0.0
    assert delta_of(math.inf, 3.0) == 1.0
    assert delta_of(1e3, 0.0) == 1.0
    assert 0 < delta_of(1e-3, 10.0) <= 1e-322
    assert epsilon_of(0.0, 0.0) == 0.0
    assert epsilon_of(0.5, 0.0) == epsilon_of(math.inf, 1e-3) == math.inf
    assert epsilon_of(1e-4, 0.5) == 0.0
    assert 0 < mu_of(0.0, 5e-324 * 100) < 1e-300
    assert mu_of(1e300, 1e-6) > 1e149


@pytest.mark.parametrize(
    "call",
    [
        lambda: delta_of(-1.0, 1.0),
        lambda: delta_of(math.nan, 1.0),
        lambda: delta_of(1.0, math.nan),
        lambda: delta_of("1", 1.0),  # type: ignore[arg-type]
        lambda: mu_of(1.0, 0.0),
        lambda: mu_of(1.0, 1.0),
        lambda: mu_of(-1.0, 0.1),
        lambda: mu_of(math.inf, 0.1),
        lambda: epsilon_of(1.0, 1.0),
        lambda: epsilon_of(1.0, -1e-9),
        lambda: mu_of_rho(-1.0),
        lambda: rho_of(True),
        lambda: drawn_excess(0.0, 1.0),
        lambda: drawn_excess(math.inf, 1.0),
    ],
)
def test_what_is_no_budget_is_refused(call):
    with pytest.raises(PdpError, match="must"):
        call()


def discrete_delta(sigma, shift, epsilon):
    """δ of integer noise with P(z) ∝ e^{−z²/2σ²}, by adding up."""
    places = np.arange(-400, 401)
    mass = np.exp(-(places**2) / (2 * sigma**2))
    mass /= mass.sum()
    moved = np.exp(-((places - shift) ** 2) / (2 * sigma**2))
    moved /= moved.sum()
    return float(np.maximum(moved - math.exp(epsilon) * mass, 0).sum())


@pytest.mark.parametrize(
    ("sigma", "epsilon", "drawn", "formula"),
    [(0.5, 5.4, 0.0482906, 0.0206979), (1.0, 5.3, 2.73751e-7, 1.29062e-7)],
)
def test_integer_gaussian_noise_is_not_gdp(sigma, epsilon, drawn, formula):
    assert discrete_delta(sigma, 1, epsilon) == pytest.approx(drawn, rel=1e-5)
    assert delta_of(1 / sigma, epsilon) == pytest.approx(formula, rel=1e-5)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0, 10.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_the_excess_of_a_grid_covers_integer_noise(sigma, epsilon):
    for shift in (1, 2, 5):
        allowed = delta_of(shift / sigma, epsilon) + drawn_excess(sigma, epsilon, step=1.0)
        assert discrete_delta(sigma, shift, epsilon) <= allowed


def test_the_excess_of_what_is_drawn_is_nothing_to_speak_of():
    assert drawn_excess(1.0, 10.0) <= 1e-322
    assert drawn_excess(1e-300, 1.0) < 1e-40
    assert drawn_excess(5e-324, 1.0) == pytest.approx((1 + math.e) / 8, rel=1e-9)
    assert drawn_excess(1.0, 1.0, step=0.0) == 0.0


def test_opendp_draws_the_discrete_gaussian_on_a_grid():
    """With a coarse grid its law is seen; by default the grid is as fine as floats get."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    number = 4000
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=number)
    space = domain, dp.l2_distance(T=float)
    coarse = np.array(dp.m.make_gaussian(*space, scale=0.5, k=-1)([0.0] * number))
    assert np.all(coarse == np.rint(2 * coarse) / 2)
    grid = np.arange(-20, 21) / 2
    mass = np.exp(-(grid**2) / (2 * 0.5**2))
    mass /= mass.sum()
    for place, share in zip(grid[18:23], mass[18:23], strict=True):
        error = math.sqrt(share * (1 - share) / number)
        assert np.mean(coarse == place) == pytest.approx(share, abs=7 * error)
    fine = np.array(dp.m.make_gaussian(*space, scale=1e-310)([0.0] * number))
    assert len(np.unique(fine)) > 0.99 * number  # even among the subnormal floats
    assert np.std(fine / 1e-310) == pytest.approx(1, abs=0.1)  # more than 8 standard errors


def test_bisection_of_floats_ends_between_neighbours():
    assert gaussian_dp._last_float(lambda value: value <= 0.1) == 0.1
    assert gaussian_dp._last_float(lambda _: False) == 0.0


def test_why_what_is_drawn_cannot_be_certified():
    with pytest.raises(PdpError, match="Raise the scale"):
        gaussian_dp.check_drawn(2000.0, 1e-6, [1e4])
    with pytest.raises(PdpError, match="another unit"):
        gaussian_dp.check_drawn(1.0, 1e-6, [1e-320])
