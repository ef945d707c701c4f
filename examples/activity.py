"""A day of activity as a Markov chain: 288 five-minute states, active or not.

Transition figures as published for such data: an inactive person stays inactive with probability
0.8824, an active one stays active with probability 0.6953. Which five minutes was somebody active?
A count over the day must not tell.
"""

import numpy as np

import pdp_calibrate as pdp

day = pdp.MarkovChain(
    transition=[[0.8824, 0.1176], [0.3047, 0.6953]],
    length=288,
    states=[0, 1],
    provenance="public",
)
print(f"active {day.start[1]:.1%} of the time")

active = pdp.Count(values={1})
cal = pdp.calibrate(day, active, epsilon=1.0)
print()
print(pdp.explain(cal))

# The weakest adversary, who knows nothing but the chain, needs nearly as much noise.
weakest = pdp.calibrate(day, active, epsilon=1.0, adversaries=pdp.Adversaries.weakest())
print()
print(f"against everyone {cal.scale:.3f}, against those who know nothing {weakest.scale:.3f}")
print(f"group privacy would need {cal.baselines['group']:.0f}: the whole day as one secret")

# One person's day, simulated here, and what is published of it.
rng = np.random.default_rng(288)
states = [0]
while len(states) < day.length:
    states.append(int(rng.random() < day.transition[states[-1]][1]))
release = cal.release(dict(zip(day.names, states, strict=True)))
low, high = release.interval()
print(f"published: active in about {release.value} of 288 intervals (95 %: {low} to {high})")
