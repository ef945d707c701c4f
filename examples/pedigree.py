"""A pedigree with loops: the Spanish Habsburgs, where cousins and nieces were married.

Who is whose child is public (F. Alvarez, F. C. Ceballos and C. Quinteiro, "The role of inbreeding
in the extinction of a European royal dynasty", PLoS ONE 4, 2009). Suppose that a study of portraits
says who had the family's jaw, and publishes how many did. A tree cannot hold such a family: two
parents of several children, and every marriage between relatives, close a loop.
"""

import pdp_calibrate as pdp

CHILDREN = {  # child: (father, mother)
    "Charles V": ("Philip I", "Joanna I"),
    "Ferdinand I": ("Philip I", "Joanna I"),
    "Philip II": ("Charles V", "Isabella of Portugal"),
    "Maria of Spain": ("Charles V", "Isabella of Portugal"),
    "Maximilian II": ("Ferdinand I", "Anna of Bohemia"),
    "Anna of Bavaria": ("Ferdinand I", "Anna of Bohemia"),
    "Charles of Styria": ("Ferdinand I", "Anna of Bohemia"),
    "Anna of Austria": ("Maximilian II", "Maria of Spain"),
    "Maria Anna of Bavaria": ("Albert V", "Anna of Bavaria"),
    "Philip III": ("Philip II", "Anna of Austria"),
    "Margaret": ("Charles of Styria", "Maria Anna of Bavaria"),
    "Ferdinand II": ("Charles of Styria", "Maria Anna of Bavaria"),
    "Philip IV": ("Philip III", "Margaret"),
    "Maria Anna of Spain": ("Philip III", "Margaret"),
    "Ferdinand III": ("Ferdinand II", "Maria Anna (1574)"),
    "Mariana": ("Ferdinand III", "Maria Anna of Spain"),
    "Charles II": ("Philip IV", "Mariana"),
}
married_in = dict.fromkeys(p for pair in CHILDREN.values() for p in pair if p not in CHILDREN)

# Assumed: one in five has it, more if a parent has, every second if both have.
by_chance = {0: 0.8, 1: 0.2}
likely = {0: 0.2, 1: 0.35, 2: 0.5}
inherited = {
    (father, mother): {1: likely[father + mother], 0: 1 - likely[father + mother]}
    for father in (0, 1)
    for mother in (0, 1)
}
family = pdp.Network.from_conditionals(
    dict.fromkeys(married_in, by_chance),
    {child: (parents, inherited) for child, parents in CHILDREN.items()},
)
print(family)

print()
print("with the jaw among             scale   plain DP   group privacy")
for words, asked in (
    ("everyone", family.names),
    ("those who married in", tuple(married_in)),
    ("the last three generations", ("Philip IV", "Maria Anna of Spain", "Mariana", "Charles II")),
):
    cal = pdp.calibrate(family, pdp.Count(values={1}, over=asked), epsilon=1.0)
    plain, group = cal.baselines["dp"], cal.baselines["group"]
    print(f"{words:<28} {cal.scale:7.2f} {plain:10.2f} {group:15.2f}")

leak = pdp.leakage(family, pdp.Count(values={1}), scale=5.0)
print()
print(f"at scale 5 somebody learns at least {leak.lower:.3f}, nobody more than {leak.value:.3f}")
print(f"most can be learned about {leak.witness.target}")

count = pdp.calibrate(family, pdp.Count(values={1}), epsilon=1.0)
portraits = dict.fromkeys(family.names, 0) | {"Joanna I": 1, "Philip II": 1, "Charles II": 1}
release = count.release(portraits)
low, high = release.interval()
print()
print(f"published: {release.value} (95 %: {low:.0f} to {high:.0f})")
