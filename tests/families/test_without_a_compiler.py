"""Small models are calibrated without numba: a fresh process does not even import it."""

import subprocess
import sys

import pytest

MODELS = {
    "chain of 100": "pdp.MarkovChain(transition=[[.9, .1], [.2, .8]], length=100)",
    "three states": "pdp.MarkovChain(transition=[[.8, .1, .1], [.1, .8, .1], [.2, .1, .7]],"
    " length=40, states=[0, 1, 2])",
    "group of 8": "pdp.BinaryGroup(count_probabilities=[1 / 9] * 9)",
    "categories": "pdp.CategoryGroup(size=3, categories=[0, 1, 2], count_probabilities=[.1] * 10)",
    "any dependence": "pdp.Unknown(size=4, domain=[0, 1])",
    "network": "pdp.Network(factors=[((k, (k + 1) % 30), [[3, 2], [2, 3]]) for k in range(30)],"
    " domains={k: [0, 1] for k in range(30)})",
    "mixing chain": "pdp.MixingChain(length=20, diameter=1.5)",
}


@pytest.mark.parametrize("model", MODELS)
def test_of_small_models(model):
    code = (
        "import sys, pdp_calibrate as pdp\n"
        f"found = pdp.calibrate({MODELS[model]}, pdp.Sum(), epsilon=1.0)\n"
        "assert 0.999 < found.leakage.value <= 1\n"
        "assert 'numba' not in sys.modules\n"
    )
    done = subprocess.run(  # noqa: S603, our own code
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
