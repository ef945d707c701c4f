"""Draw the pictures of the README and of the page of promises: ``python draw.py [folder]``."""

import sys
from pathlib import Path

import pdp_calibrate as pdp
from pdp_calibrate.cli.ohio import wheeze

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent

children = wheeze()
model = pdp.TableEstimator(smoothing=0.5, source="public").fit(children).model_
cal = pdp.calibrate(model, pdp.Count(values={1}), epsilon=1.0)

for name, figure in {
    "leakage.png": pdp.plots.leakage_by_scale(cal),
    "knowledge.png": pdp.plots.leakage_by_knowledge(cal),
    "beliefs.png": pdp.plots.beliefs(cal),
}.items():
    figure.savefig(folder / name, dpi=110)
    print(folder / name)
