"""Constants that tune speed and memory, with their units, all in one place.

None of them decides whether a result is right: a bound is a bound and a bracket a bracket whatever
stands here. They decide how long a search takes, how much memory it holds, how tight a bracket is
where a search is cut short, and when something is said. Nothing depends on the number of cores.
Constants on which correctness rests stand beside the code that needs them.
"""

from __future__ import annotations

# What a terminal shows (seconds, except where said)

SILENT_SECONDS = 1.0
"""Shorter work shows no bar."""
REFRESH_SECONDS = 0.2
"""Between looks at the clock while threads work."""
COMPILING_SECONDS = 4
"""What compiling a family's code takes, as announced."""
SHARE_OF_BAR = 0.25
"""Of the way that is left, covered by one search among an unknown number of them (a share)."""

# Where compiled code takes over from NumPy

COMPILED_MEMBERS = 64
"""Members of a yes/no group beyond which events are compared in compiled code."""
COMPILED_CHAIN_STEPS = 4e8
"""Elementary steps of one search along a chain (see `Setup.work`) beyond which it is compiled."""

# Memory (float64 numbers held at once)

CHUNK_NUMBERS = 2**20
"""While densities of many events are evaluated."""
TOGETHER_NUMBERS = 2**16
"""Of densities along a chain that NumPy carries side by side: about what a cache holds."""
SET_DISTANCES = 2**21
"""Distances of outputs from values, in a search of a set of tables."""
KEPT_LAWS = 2**22
"""Probabilities of conditional laws that a set of tables keeps from one scale to the next."""
TREE_ARRAYS = 2**22
"""In the arrays of one pass through a tree."""

# Chains

FULL_LENGTH = 200
"""Tuples of a chain up to which all its windows are walked, without truncation."""
LONGEST_SIDE = 1000
"""Tuples on one side of a target beyond which no window is walked."""
CHAIN_STEPS = 4e9
"""Elementary steps of one search along a chain, at most."""
FORGETFUL = 10
"""Times as many steps for a chain that never forgets, where nothing else helps (a factor)."""
LATTICE_STEPS = 2e10
"""Elementary steps where contributions must be rounded to a lattice."""
FORGOTTEN = 1e-3
"""Diameter (nats) at which most windows can be left out."""
TRUNCATION = 2e-7
"""What truncation may add on each side, relative to the smallest leakage."""
QUICK_LAWS = 500_000
"""Conditional laws of a short chain up to which its joint table is searched rather than a lattice
to which contributions are rounded."""
REPEAT_STEPS = 3e8
"""Elementary steps of one search through the windows of repeated releases."""
REPEAT_PASSES = 4
"""Recursions per comparison there."""
SHORTEST_REACH = 4
"""Tuples on each side worth walking there, at least."""

# Trees

REGION_NUMBERS = 4e6
"""Probabilities that all views of the regions of a tree may have."""
REGION_EDGES = 1e6
"""Pairs of neighbouring edges that may be gone through."""
REGION_REACH = 100
"""Steps from a target that a region reaches at most."""
REGION_TUPLES = 200
"""Tuples of a region for which a lattice is made."""
REGION_LATTICE = 512
"""Steps of a sum whose contributions must be rounded to a lattice."""
NEGLIGIBLE = 1e-12
"""Nats for which regions reach no further."""
WORTHWHILE = 0.99
"""Share of a bound that another round must leave, at most, to be followed by a further one."""

# Sets of tables

SET_STEPS = 2e11
"""Elementary steps of one search without a time limit: some minutes."""
SET_CASES = 2**19
"""Pairs of a target and a set of unknown tuples, likewise."""
SET_STEPS_BETWEEN_CHECKS = 2**27
"""Elementary steps between looks at the clock."""
