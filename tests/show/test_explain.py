"""Words: right numbers, the right people, and nothing that is secret."""

import math
import re

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.show.words import anyone, asked, clamping_bias, entry, knowledge
from tests.oracles import brute_force as oracle
from tests.oracles.adversaries import everyone

PAIR = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["mother", "child"]
)
RIVALS = pdp.JointTable(probabilities=[[0.1, 0.4], [0.4, 0.1]], domains=[[0, 1]] * 2)


@pytest.mark.parametrize("seed", range(6))
def test_what_plain_dp_would_really_have_been(seed):
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(np.full(8, 0.6)).reshape(2, 2, 2)
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 3)
    cal = pdp.calibrate(table, pdp.Sum(), epsilon=0.8)
    truth, _ = oracle.worst_leakage(cells, [[0, 1]] * 3, sum, 1 / 0.8, everyone)
    words = pdp.explain(cal)
    if truth <= 0.8 * (1 + 1e-9):
        assert "would have been enough" in words
        assert "really" not in words
    else:
        (really,) = re.findall(r"its ε = 0\.8 would really have been ([\d.]+)\.", words)
        assert float(really) == pytest.approx(truth, rel=6e-4)


def test_words_of_a_calibration():
    cal = pdp.calibrate(PAIR, pdp.Sum())
    words = pdp.explain(cal)
    assert f"noise of scale {cal.scale:.4g}" in words
    assert "The worst adversary attacks mother and knows nobody's entry" in words
    assert "a factor of up to 2.72, for example from even odds to 73.1 %" in words
    assert f"(group privacy) would need scale 2, {2 / cal.scale:.2g} times as much" in words
    assert f"at most ±{cal.accuracy():.4g} in 95 % of releases" in words
    assert "stated by hand" in words
    assert "This is the only release" in words


def test_words_where_correlation_does_not_help():
    words = pdp.explain(pdp.calibrate(RIVALS, pdp.Mean()))
    assert "would have been enough" in words
    assert "knows x2 = " in words or "knows x1 = " in words


def test_a_bracket_is_told_as_one():
    group = pdp.GaussianGroup(size=3, correlation=0.5, variance=1.0, bounds=(0, 1))
    found = pdp.calibrate(group, pdp.Sum(clamp=True))
    assert found.leakage.lower < 0.99 * found.leakage.value
    words = pdp.explain(found)
    assert "the worst of them gets at most" in words
    assert "The worst adversary found" in words
    assert f"for nobody by more than {math.exp(found.leakage.value):.3g}" in words


def test_words_of_several_answers_and_of_releases():
    cal = pdp.calibrate(PAIR, [pdp.Sum(), pdp.Histogram(over=["child"])])
    words = pdp.explain(cal)
    assert "the sum of all entries" in words
    assert "how often each value occurs among child" in words
    data = {"mother": 1, "child": 0}
    assert pdp.explain(cal.release(data)).startswith("Released together: ")
    release = pdp.calibrate(PAIR, pdp.Sum()).release(data)
    low, high = release.interval()
    assert f"Released: {release.value}." in pdp.explain(release)
    assert f"between {low} and {high}" in pdp.explain(release)
    counts = pdp.calibrate(PAIR, pdp.Histogram()).release(data)
    assert "Released: 2 noisy answers" in pdp.explain(counts)


def test_words_of_a_ledger():
    ledger = pdp.Ledger(PAIR, epsilon=2.0, draw="week 1")
    ledger.release(pdp.Sum(), {"mother": 1, "child": 0}, epsilon=0.5)
    ledger.charge(0.1, note="a survey")
    words = pdp.explain(ledger)
    assert f"{ledger.spent:.4g} is spent and {ledger.remaining:.4g} is left" in words
    assert "an outside mechanism of ε = 0.1 “a survey”" in words
    assert "ε = 0.5 alone" in words


def test_words_of_a_leakage_and_of_audits():
    leak = pdp.leakage(PAIR, pdp.Sum(), scale=1.0)
    assert f"leaks {leak.value:.4g}" in pdp.explain(leak)
    cal = pdp.calibrate(PAIR, pdp.Sum())
    kept = pdp.explain(pdp.audit(cal, draws=4000, confidence=1 - 1e-10, seed=1))
    assert "agrees with the claim ε = 1" in kept
    broken = pdp.audit(
        lambda data: data["mother"] + data["child"],
        witness=cal.leakage.witness,
        epsilon=0.5,
        draws=4000,
        seed=1,
    )
    assert broken.is_broken
    assert "The claim ε = 0.5 is false" in pdp.explain(broken)
    with pytest.raises(pdp.PdpError, match="got int"):
        pdp.explain(3)


@pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")
@pytest.mark.filterwarnings("ignore::pdp_calibrate.PrivacyLeakWarning")
def test_a_private_model_stays_unnamed():
    frame = pd.DataFrame({"mother": [0, 0, 1, 1, 0, 1] * 40, "child": [0, 0, 1, 1, 1, 0] * 40})
    model = pdp.TableEstimator().fit(frame).model_
    with pytest.warns(pdp.PrivacyLeakWarning):
        cal = pdp.calibrate(model, pdp.Sum())
    with pytest.warns(pdp.PrivacyLeakWarning):
        joint = pdp.calibrate(model, [pdp.Sum(), pdp.Sum(over=["child"])])
    with pytest.warns(pdp.PrivacyLeakWarning):
        leak = pdp.leakage(model, pdp.Sum(), scale=1.0)
    ledger = pdp.Ledger(model, epsilon=2.0)
    for subject in (cal, joint, cal.release(frame), leak, ledger):
        words = pdp.explain(subject)
        assert "rivate" in words
        assert "attacks" not in words
        assert "really" not in words
        assert "group privacy" not in words
        for cell in model.probabilities.ravel():
            assert f"{cell:.4g}" not in words
    assert "attacks" not in leak._repr_html_()


@pytest.mark.parametrize("clamped", [pdp.Sum(clamp=True), pdp.Mean(clamp=True)])
def test_the_bias_of_clamping_is_that_of_the_model(clamped):
    model = pdp.Gaussian(
        mean=[1.0, 4.0], covariance=[[4.0, 1.0], [1.0, 9.0]], bounds=(0, 5), names=["a", "b"]
    )
    cal = pdp.calibrate(model, clamped, rows=10)
    truth = 0.0
    for mean, spread in ((1.0, 2.0), (4.0, 3.0)):
        grid = np.linspace(mean - 12 * spread, mean + 12 * spread, 400_001)
        density = np.exp(-((grid - mean) ** 2) / (2 * spread**2)) / (
            spread * math.sqrt(2 * math.pi)
        )
        truth += float(np.sum((np.clip(grid, 0, 5) - grid) * density) * (grid[1] - grid[0]))
    truth *= 10 if isinstance(clamped, pdp.Sum) else 1 / 2
    assert clamping_bias(cal) == pytest.approx(truth, rel=1e-6)
    assert f"{truth:+.3g}" in pdp.explain(cal)


def test_clamping_without_known_means_is_said_to_depend_on_the_data():
    group = pdp.GaussianGroup(size=3, correlation=0.2, bounds=(0, 1))
    words = pdp.explain(pdp.calibrate(group, pdp.Sum(clamp=True)))
    assert "depends on the data alone" in words
    assert "Values outside" not in pdp.explain(pdp.calibrate(group, pdp.Sum()))


def test_which_assumptions_carry_the_guarantee():
    group = pdp.GaussianGroup(size=3, correlation=(0, 0.4), bounds=(0, 1))
    assert "one common correlation" in pdp.explain(pdp.calibrate(group, pdp.Sum(clamp=True)))
    assert "noisy knowledge" not in pdp.explain(pdp.calibrate(group, pdp.Sum()))
    assert "noisy knowledge" in pdp.explain(pdp.calibrate(PAIR, pdp.Sum()))
    weakest = pdp.calibrate(PAIR, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    assert "plain differential privacy is not implied" in pdp.explain(weakest)
    center = pdp.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
    sampled = pdp.SampledGaussian(center=center, rows=200, confidence=0.9)
    assert "fails with probability at most 0.1" in pdp.explain(pdp.calibrate(sampled, pdp.Sum()))
    blocks = pdp.Blocks(models=[PAIR, pdp.Unknown(size=2, domain=[0, 1])], counts=[10, 3])
    words = pdp.explain(pdp.calibrate(blocks, pdp.Sum()))
    assert "independent blocks of a joint table" in words
    assert "in any way at all" in words


def test_phrases():
    people = pdp.Adversaries
    assert anyone(people.knowing(at_least=1, at_most=2)) == (
        "anyone who knows at least 1 and at most 2 other entries exactly"
    )
    assert anyone(people.exactly("a", known=["b"])) == "one who attacks a and knows b"
    assert knowledge(dict.fromkeys((0, *range(5, 20)), 1)) == (
        "knows entries 0, 5 to 19, all of them 1"
    )
    assert knowledge({(0, 1): 2.0}) == "knows the 2nd member of the 1st group = 2"
    assert asked(pdp.Count(values={2, 1}, over=["a"])) == "how many of a are 1, 2"
    assert asked(pdp.Linear(weights={"a": 1, "b": -0.5})) == "the weighted sum 1·a + -0.5·b"
    assert asked(pdp.Custom(function=max, over=["a", "b"])) == "a function of a, b"


def test_members_of_unnamed_groups_are_told_by_the_size_of_their_group():
    long = pd.DataFrame({"home": [1, 2, 2, 3, 3, 3], "income": [10.0, 20, 5, 0, 30, 1]})
    release = long.pdp.sum(
        "income", bounds=(0, 100), groups="home", correlation=(0, 0.4), epsilon=1.0
    )
    words = pdp.explain(release)
    assert "attacks the 1st member of a group of 3 and knows nobody's entry" in words
    assert "favours their entry = 0 over 100" in words
    assert "block 0" not in words
    crew = pdp.BinaryGroup(count_probabilities=[0.3, 0.2, 0.2, 0.3])
    chain = pdp.MarkovChain(transition=[[0.6, 0.4], [0.4, 0.6]], length=12)
    mixed = pdp.Blocks(models=[crew, chain, crew, pdp.Unknown(size=2, domain=[0, 1])])
    assert entry((1, 10), mixed) == "the 11th step of a series of 12"
    assert entry((2, 1), mixed) == "the 2nd member of the 3rd group"  # two groups have its size
    assert entry((3, 1), mixed) == "the 2nd member of a group of 2"
    many = {(1, place): 0 for place in range(12) if place != 2}
    assert knowledge(many, mixed) == "knows steps 1 to 2, 4 to 12 of a series of 12, all of them 0"
    two = knowledge({(0, 0): 1, (0, 2): 0}, mixed)
    assert two == "knows the 1st member of the 1st group = 1, the 3rd member of the 1st group = 0"
    assert entry(((3, 0), 1), mixed) == "the 1st member of a group of 2 (another such group)"
    assert entry(((3, 0), 1)) == "the 1st member of the 4th group (another such group)"
    assert entry(("mother", 1)) == "('mother', 1)"
    either = pdp.ModelSet(models=[mixed, mixed])
    assert entry((3, 1), either) == entry((3, 1), mixed)
    both = {(0, 0): 1, **many}
    assert "(12 in all)" in knowledge(both, mixed)


def test_notebook_tables_are_escaped_and_tell_the_numbers():
    hostile = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["<b>", "c"]
    )
    cal = pdp.calibrate(hostile, pdp.Sum(over=["<b>"]))
    data = {"<b>": 1, "c": 0}
    joint = pdp.calibrate(hostile, [pdp.Sum(over=["<b>"]), pdp.Sum()])
    ledger = pdp.Ledger(hostile, epsilon=1.0, draw="<b>")
    found = pdp.posterior(hostile, pdp.Sum(), scale=1.0, target="<b>", output=2.0)
    audit = pdp.audit(cal, draws=2000, seed=1)
    release = cal.release(data)
    counts = pdp.calibrate(hostile, pdp.Histogram()).release(data)
    rows = pdp.calibrate(hostile, pdp.Histogram()).release_rows(pd.DataFrame([data, data]))
    subjects = (cal, cal.leakage, release, joint, joint.release(data), ledger, found, audit, counts)
    for subject in (*subjects, rows):
        table = subject._repr_html_()
        assert table.startswith("<table>")
        assert "<b>" not in table.replace(f"<b>{type(subject).__name__}</b>", "")
    assert f"{cal.scale:.6g}" in cal._repr_html_()
    assert f">{release.value}<" in release._repr_html_()
    assert f"{audit.lower_bound:.4g}" in audit._repr_html_()
