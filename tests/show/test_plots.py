"""Pictures: the numbers behind them against brute force, and what they look like."""

import io
import itertools
import math
import sys
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import pdp_calibrate as pdp
from pdp_calibrate.show import views
from pdp_calibrate.show.correlations import correlations
from pdp_calibrate.show.drawing.canvas import THEMES, as_svg
from tests.oracles import brute_force as oracle

CELLS = np.array([[[0.2, 0.1], [0.05, 0.1]], [[0.1, 0.05], [0.1, 0.3]]])
TABLE = pdp.JointTable(
    probabilities=CELLS, domains=[[0, 1], [0, 1], [0, 2]], names=["mother", "father", "child"]
)
DOMAINS = [[0, 1], [0, 1], [0, 2]]
CAL = pdp.calibrate(TABLE, pdp.Sum(), epsilon=1.0)


def test_leakage_by_scale_is_the_brute_force_curve():
    curve = views.leakage_by_scale(CAL)
    assert {CAL.scale, CAL.baselines["dp"]} <= set(curve.scales)
    assert min(curve.scales) < CAL.baselines["dp"]
    assert max(curve.scales) > CAL.baselines["group"]
    for scale, value in list(zip(curve.scales, curve.values, strict=True))[::4]:
        truth, _ = oracle.worst_leakage(CELLS, DOMAINS, sum, scale, lambda _i, _k: True)
        assert value == pytest.approx(truth, rel=1e-9)
        assert value >= truth * (1 - 1e-15)
    assert list(curve.values) == sorted(curve.values, reverse=True)
    truth, _ = oracle.worst_leakage(CELLS, DOMAINS, sum, curve.plain_scale, lambda _i, _k: True)
    assert curve.plain_leakage == pytest.approx(truth, rel=1e-9)


def test_leakage_by_knowledge_is_the_brute_force_worst_of_each_size():
    curve = views.leakage_by_knowledge(CAL)
    assert curve.known == (0, 1, 2)
    for known, value, plain in zip(curve.known, curve.values, curve.plain, strict=True):

        def so_many(_target, others, size=known):
            return len(others) == size

        for scale, found in ((CAL.scale, value), (CAL.baselines["dp"], plain)):
            truth, _ = oracle.worst_leakage(CELLS, DOMAINS, sum, scale, so_many)
            assert found == pytest.approx(truth, rel=1e-9)
    assert max(curve.values) == CAL.leakage.value
    one = pdp.calibrate(TABLE, pdp.Sum(), adversaries=pdp.Adversaries.exactly("child"))
    assert views.leakage_by_knowledge(one) is None
    weakest = pdp.calibrate(TABLE, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    assert views.leakage_by_knowledge(weakest) is None
    assert views.adversary_graph(weakest) is None
    most = pdp.calibrate(TABLE, pdp.Sum(), adversaries=pdp.Adversaries.knowing(at_least=1))
    assert views.leakage_by_knowledge(most).known == (1, 2)


def test_the_graph_holds_the_exact_leakage_of_every_adversary():
    found = views.adversary_graph(CAL)
    assert len(found.leakages) == 3 * 4
    for (target, known), value in found.leakages.items():
        place = TABLE.names.index(target)
        indices = frozenset(map(TABLE.names.index, known))
        truth = oracle.adversary_leakage(CELLS, DOMAINS, sum, CAL.scale, place, indices)
        assert value == pytest.approx(truth, rel=1e-9)
    assert found.leakages[found.worst] == max(found.leakages.values())
    big = pdp.JointTable(probabilities=np.full((2,) * 7, 2.0**-7), domains=[[0, 1]] * 7)
    assert views.adversary_graph(pdp.calibrate(big, pdp.Sum())) is None


def test_a_graph_of_six_entries_and_of_a_chain_is_the_brute_force_one():
    rng = np.random.default_rng(3)
    cells = rng.dirichlet(np.full(64, 3.0)).reshape((2,) * 6)
    six = pdp.JointTable(probabilities=cells, domains=[[0, 1]] * 6)
    chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=5)
    for model, law, rows in ((six, cells, 1), (chain, chain.to_table().probabilities, 7)):
        for query in (pdp.Sum(), pdp.Mean()):
            cal = pdp.calibrate(model, query, rows=rows)
            found = views.adversary_graph(cal)
            size = law.ndim
            assert len(found.leakages) == size << (size - 1)
            unit = cal.scale * (size * rows if isinstance(query, pdp.Mean) else 1)
            for (target, known), value in list(found.leakages.items())[::9]:
                place, others = model.names.index(target), map(model.names.index, known)
                truth = oracle.adversary_leakage(
                    law, [[0, 1]] * size, sum, unit, place, frozenset(others)
                )
                assert value == pytest.approx(truth, rel=1e-9)
            assert found.leakages[found.worst] == pytest.approx(cal.leakage.value, rel=1e-8)
            # LS/λ of those who know everyone else: the paper's first layer, in the same units
            assert found.graph.first_layer == pytest.approx(np.full(size, 1 / unit))


def test_leakage_by_knowledge_of_households_is_about_one_of_them():
    homes = pdp.Blocks(
        models=[pdp.BinaryGroup(count_probabilities=law) for law in ([0.6, 0.4], [0.4, 0.2, 0.4])],
        counts=[500, 400],
    )
    cal = pdp.calibrate(homes, pdp.Sum())
    curve = views.leakage_by_knowledge(cal)
    assert curve.known == (0, 1)
    assert "members of the group" in curve.among
    pair = np.array([[0.4, 0.1], [0.1, 0.4]])
    for known, value, plain in zip(curve.known, curve.values, curve.plain, strict=True):
        for scale, found in ((cal.scale, value), (cal.baselines["dp"], plain)):
            truth, _ = oracle.worst_leakage(
                pair, [[0, 1]] * 2, sum, scale, lambda _i, others, size=known: len(others) == size
            )
            assert found == pytest.approx(truth, rel=1e-9)


def test_beliefs_follow_bayes():
    found = views.beliefs(CAL)
    witness = CAL.leakage.witness
    place = TABLE.names.index(witness.target)
    known = {TABLE.names.index(name): value for name, value in witness.known.items()}
    before, after = dict.fromkeys(DOMAINS[place], 0.0), dict.fromkeys(DOMAINS[place], 0.0)
    for cell in itertools.product(*(range(2) for _ in DOMAINS)):
        values = [domain[index] for domain, index in zip(DOMAINS, cell, strict=True)]
        if all(values[index] == value for index, value in known.items()):
            density = math.exp(-abs(witness.output - sum(values)) / CAL.scale)
            before[values[place]] += CELLS[cell]
            after[values[place]] += CELLS[cell] * density
    for masses, shown in ((before, found.before), (after, found.after)):
        wanted = [mass / sum(masses.values()) for mass in masses.values()]
        assert shown == pytest.approx(wanted)
    gauss = pdp.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
    even = views.beliefs(pdp.calibrate(gauss, pdp.Sum(), epsilon=1.0))
    assert even.before == (0.5, 0.5)
    assert even.after[0] == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-6)


GAUSSIAN_NOISE = {"noise": "gaussian", "epsilon": 1.0, "delta": 1e-4}


@pytest.mark.parametrize(
    "model", [TABLE, pdp.BinaryGroup(count_probabilities=[0.4, 0.1, 0.2, 0.3])]
)
def test_beliefs_after_gaussian_noise_follow_bayes_and_leave_out_a_share_of_delta(model):
    cal = pdp.calibrate(model, pdp.Sum(), **GAUSSIAN_NOISE)
    found, witness = views.beliefs(cal), cal.leakage.witness
    table = model if model is TABLE else model.to_table()
    assert found.beyond == 1e-4
    place = table.names.index(witness.target)
    known = {table.names.index(name): value for name, value in witness.known.items()}
    atoms = {value: [] for value in table.domains[place]}
    for cell in itertools.product(*(range(len(domain)) for domain in table.domains)):
        values = [domain[at] for domain, at in zip(table.domains, cell, strict=True)]
        if all(values[at] == value for at, value in known.items()):
            atoms[values[place]].append((table.probabilities[cell], sum(values)))

    def densities(outputs):
        return {
            value: sum(p * np.exp(-(((outputs - at) / cal.scale) ** 2) / 2) for p, at in some)
            for value, some in atoms.items()
        }

    prior = {value: sum(p for p, _ in some) for value, some in atoms.items()}
    grid = np.linspace(-20 * cal.scale, 20 * cal.scale, 400_001)
    there = densities(grid)
    first, second = witness.secrets
    odds = there[first] / there[second] * prior[second] / prior[first]
    wanted = list(found.values).index(str(first)), list(found.values).index(str(second))
    shown = found.after[wanted[0]] / found.after[wanted[1]]
    shown *= found.before[wanted[1]] / found.before[wanted[0]]
    beyond = there[first][odds > shown].sum() / there[first].sum()
    assert beyond == pytest.approx(1e-4, rel=0.1)
    assert "probability of 0.0001" in pdp.plots.beliefs(cal).axes[0].get_xlabel()


def test_beliefs_about_gaussian_values_are_those_of_a_shift():
    gauss = pdp.Gaussian(covariance=[[1.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
    cal = pdp.calibrate(gauss, pdp.Sum(), **GAUSSIAN_NOISE)
    found, mu = views.beliefs(cal), cal.leakage.mu
    telling = mu - NormalDist().inv_cdf(1e-4)  # standard deviations from the other secret
    gain = NormalDist(mu).pdf(telling) / NormalDist().pdf(telling)
    assert found.after[0] / found.after[1] == pytest.approx(gain, rel=1e-5)
    home = pdp.GaussianGroup(size=3, correlation=0.4, bounds=(0, 4), variance=1.0)
    for model in (gauss, TABLE, home):
        cal = pdp.calibrate(model, pdp.Sum(), **GAUSSIAN_NOISE)
        shown = views.adversary_graph(cal)
        assert max(shown.leakages.values()) == pytest.approx(cal.leakage.value)
        assert len(shown.leakages) == len(model.names) * 2 ** (len(model.names) - 1)
        assert pdp.plots.adversary_graph(cal).axes
    assert (
        "1e-06"
        in views.adversary_graph(pdp.calibrate(gauss, pdp.Sum(), noise="gaussian", rho=0.1)).unit
    )


def test_correlations_are_those_of_the_expanded_table():
    chain = pdp.MarkovChain(
        transition=[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]],
        length=4,
        states=[0, 1, 5],
        initial=[0.2, 0.3, 0.5],
    )
    group = pdp.BinaryGroup(count_probabilities=[0.4, 0.1, 0.2, 0.3])
    for model in (chain, group):
        table = model.to_table()
        shown = np.array(correlations(model).matrix)
        for i, j in itertools.combinations(range(len(table.names)), 2):
            rho = table.correlation(table.names[i], table.names[j])
            assert shown[i, j] == shown[j, i] == pytest.approx(rho, abs=1e-12)
    blocks = np.array(correlations(pdp.Blocks(models=[TABLE, group])).matrix)
    assert blocks.shape == (6, 6)
    assert np.all(blocks[:3, 3:] == 0)
    assert blocks[0, 1] == pytest.approx(TABLE.correlation("mother", "father"))
    series = pdp.GaussianSeries(length=200, correlation=-0.5, bounds=(0, 1))
    assert np.array(correlations(series).matrix)[0, :3].tolist() == [1.0, -0.5, 0.25]
    gauss = pdp.Gaussian(covariance=[[4.0, -3.0], [-3.0, 9.0]], bounds=(0, 1))
    ball = pdp.LoewnerBall(center=gauss, radius=0.1)
    assert np.array(correlations(ball).matrix)[0, 1] == pytest.approx(-0.5)
    assert correlations(pdp.Unknown(size=3, domain=[0, 1])) is None
    words = pdp.JointTable(probabilities=[[0.5, 0], [0, 0.5]], domains=[["a", "b"]] * 2)
    assert correlations(words) is None


PICTURES = ("leakage_by_scale", "leakage_by_knowledge", "scales", "correlations", "beliefs")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", [*PICTURES, "adversary_graph"])
def test_pictures_are_600_pixels_wide_and_in_their_theme(name, theme):
    figure = getattr(pdp.plots, name)(CAL, theme=theme)
    with Image.open(io.BytesIO(figure._repr_png_())) as picture:
        assert 480 <= picture.width <= 600
        assert picture.convert("RGB").getpixel((0, 0)) == tuple(
            int(THEMES[theme].paper[place : place + 2], 16) for place in (1, 3, 5)
        )
    svg = as_svg(getattr(pdp.plots, name)(CAL), name)
    assert "var(--ink)" in svg
    assert not any(colour in svg for colour in vars(THEMES["light"]).values())
    sizes = [text.get_fontsize() for axes in figure.axes for text in axes.texts]
    assert min(sizes, default=10) >= 8


@pytest.mark.parametrize("name", PICTURES[:2])
def test_axes_say_what_they_are_and_in_which_unit(name):
    axes = getattr(pdp.plots, name)(CAL).axes[0]
    assert axes.get_ylabel() == "leakage (nats of log-odds)"
    assert axes.get_xlabel() in (
        "Laplace scale λ (units of the answer)",
        "number of other entries that the adversary knows",
    )


def test_what_is_drawn_is_what_was_computed():
    curve = views.leakage_by_scale(CAL)
    axes = pdp.plots.leakage_by_scale(CAL).axes[0]
    assert axes.lines[0].get_ydata() == pytest.approx(curve.values)
    assert [CAL.scale] in [list(line.get_xdata()) for line in axes.lines]
    words = " ".join(text.get_text() for text in axes.texts)
    assert f"really leaks {curve.plain_leakage:.3g}" in words
    assert f"this release: λ = {CAL.scale:.3g}" in words
    bars = pdp.plots.scales(CAL).axes[0]
    shown = dict(
        zip(
            [label.get_text() for label in bars.get_yticklabels()],
            [bar.get_width() for bar in bars.patches],
            strict=True,
        )
    )
    assert shown["this release"] == CAL.scale
    assert shown["group DP"] == CAL.baselines["group"]
    signs = pdp.Gaussian.from_correlation([[1, -0.3], [-0.3, 1]], bounds=(0, 1))
    written = [text.get_text() for text in pdp.plots.correlations(signs).axes[0].texts]
    assert written == ["+1.00", "−0.30", "−0.30", "+1.00"]
    whatever = SimpleNamespace(parameter="size", values=[1, 2, 3], scales=[1.0, 1.5, 1.75])
    line = pdp.plots.what_if(whatever).axes[0].lines[0]
    assert line.get_xydata().tolist() == [[1, 1.0], [2, 1.5], [3, 1.75]]
    named = SimpleNamespace(parameter="kind", values=["a", "b"], scales=[1.0, 2.0])
    assert pdp.plots.what_if(named).axes[0].get_xlabel() == "kind, if it were so"


def test_pictures_of_data_and_of_one_output():
    frame = pdp.plots.correlations(pdp.pearson(_frame()))
    assert len(frame.axes[0].texts) == 9
    found = pdp.posterior(TABLE, pdp.Sum(), scale=1.0, target="child", output=4.0)
    heights = [bar.get_height() for bar in pdp.plots.beliefs(found).axes[0].patches]
    assert heights == pytest.approx([*found.prior.values(), *found.posterior.values()])


def _frame():
    return pd.DataFrame(np.random.default_rng(1).normal(size=(30, 3)), columns=["a", "b", "c"])


def test_nothing_is_drawn_of_a_private_model():
    private = pdp.JointTable(
        probabilities=CELLS, domains=DOMAINS, names=TABLE.names, provenance="private"
    )
    with pytest.warns(pdp.PrivacyLeakWarning):
        cal = pdp.calibrate(private, pdp.Sum())
    for name in (*PICTURES[:2], "correlations", "beliefs", "adversary_graph"):
        with pytest.raises(pdp.ModelError, match="private rows"):
            getattr(pdp.plots, name)(cal)
    assert list(views.scales_of_methods(cal)) == ["plain DP", "this release"]


def test_what_cannot_be_drawn_says_so(monkeypatch):
    with pytest.raises(pdp.PdpError, match="theme must be one of light, dark"):
        pdp.plots.scales(CAL, theme="sepia")
    with pytest.raises(pdp.PdpError, match="nothing to draw for correlations"):
        pdp.plots.correlations(pdp.Unknown(size=3, domain=[0, 1]))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(pdp.PdpError, match=r"pip install .*\[plot\]"):
        pdp.plots.scales(CAL)


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_colours_stand_out_from_their_paper(theme):
    def luminance(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(first, second):
        high, low = sorted((luminance(first), luminance(second)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for colour in (theme.ink, theme.muted, theme.blue, theme.orange, theme.green):
        assert contrast(colour, theme.paper) >= 4.5  # WCAG AA for text
