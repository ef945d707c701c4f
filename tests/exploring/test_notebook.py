"""The figures of the page in a notebook: one piece of HTML, and a slider."""

import html
import re

import pytest

import pdp_calibrate as pdp

PAIR = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["<b>Ann", "Bo & Cy"]
)


def test_every_epsilon_has_its_scale_and_its_figures():
    found = pdp.explore(PAIR, pdp.Sum(), epsilons=[2.0, 0.5, 2.0])
    assert [one.epsilon for one in found.calibrations] == [0.5, 2.0]
    frames = found.html.split("<section ")[1:]
    for frame, cal in zip(frames, found.calibrations, strict=True):
        assert cal.scale == pdp.calibrate(PAIR, pdp.Sum(), epsilon=cal.epsilon).scale
        assert f'data-epsilon="{cal.epsilon:g}"' in frame
        assert f'<span class="noise">{cal.scale:.6g}</span>' in frame
        assert frame.count("<svg") == 3
    assert [" hidden>" in frame.split("<p>")[0] for frame in frames] == [False, True]
    names = re.findall(r'\bid="([^"]+)"', found.html)
    assert len(names) == len(set(names))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', found.html))
    assert used
    assert used <= set(names)
    assert "<b>" not in found.html
    assert found.html.count("http") == found.html.count("http://www.w3.org/") + 1  # http-equiv


def test_a_notebook_shows_it_in_a_frame_of_its_own():
    found = pdp.explore(PAIR, pdp.Sum(), epsilons=[1.0])
    shown = found._repr_html_()
    (inside,) = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(inside) == found.html
    assert 'sandbox="allow-scripts"' in shown
    assert "svg" not in repr(found)


def test_what_cannot_be_shown_is_refused():
    private = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, provenance="private"
    )
    with pytest.raises(pdp.ModelError, match="private rows"):
        pdp.explore(private, pdp.Sum())
    with pytest.raises(pdp.PdpError, match="at least one"):
        pdp.explore(PAIR, pdp.Sum(), epsilons=[])
    with pytest.raises(pdp.PdpError, match="epsilon must be positive"):
        pdp.explore(PAIR, pdp.Sum(), epsilons=[0.0])
