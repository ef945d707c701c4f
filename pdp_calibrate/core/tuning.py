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
"""Between checks of the clock while threads work."""
COMPILING_SECONDS = 4
"""What compiling a family's code takes, as announced."""
SHARE_OF_BAR = 0.25
"""Of the way that is left, covered by one search among an unknown number of them (a share)."""

# Where compiled code takes over from NumPy

COMPILED_MEMBERS = 64
"""Members of a yes/no group beyond which events are compared in compiled code."""
COMPILED_CHAIN_STEPS = 4e8
"""Elementary steps of one search along a chain (`Setup.is_large`) beyond which it is compiled."""

# Memory (float64 numbers held at once)

CHUNK_NUMBERS = 2**20
"""While densities of many events are evaluated."""
TOGETHER_NUMBERS = 2**18
"""Of densities along a chain that are carried side by side: about what a cache holds."""
TOGETHER_SIDES = 64
"""Left sides of windows that go together: what they leak spares the next ones work."""
SET_DISTANCES = 2**21
"""Distances of outputs from values, in a search of a set of tables."""
KEPT_LAWS = 2**22
"""Probabilities of conditional laws that a set of tables keeps from one scale to the next."""
KEPT_WINDOWS = 2**22
"""Of what the windows of a chain count for, kept from one scale to the next."""
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
TABLED_LAWS = 25_000
"""Conditional laws up to which the joint table is quicker than windows, whatever the answer."""
REPEAT_STEPS = 3e8
"""Elementary steps of one search through the windows of repeated releases."""
REPEAT_PASSES = 4
"""Recursions per comparison there."""
SHORTEST_REACH = 4
"""Tuples on each side worth walking there, at least."""

# Networks

COMPILED_NETWORK = 120
"""Tuples of a network beyond which budgets are passed on in compiled code."""
NEIGHBOURHOOD = 80
"""Tuples around a target that get an order of their own where a network is large."""
ELIMINATION_WORK = 5e7
"""Pairs of couplings that one order of elimination may go through."""
ELIMINATION_EACH = 2e8
"""The same for the two passes that leave every target alone."""
ELIMINATION_REFINED = 2e8
"""The same for all targets together that get an order of their own."""
FRONT_PAIRS = 3000
"""Pairs that take as long as it takes to begin with a tuple."""

MOMENT_CELLS = 2**16
"""Numbers in the largest array of an exact sum over a network."""
MOMENT_NUMBERS = 2**21
"""Numbers in all arrays of such a sum."""
MOMENT_EVENTS = 64
"""Things that one adversary may know, each of which takes such a sum."""
MOMENT_REGIONS = (40, 24, 12)
"""Tuples around a target, everyone else known, where the whole network is too much."""

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
"""Elementary steps between checks of the clock."""

# Gaussian noise on finite laws

EVENT_NUMBERS = 2**24
"""Numbers in the laws of all events of a table that stand in one matrix."""
LISTED_SETS = 2**12
"""Sets of unknown tuples of a table whose laws are listed one after the other."""
FINITE_NUMBERS = 3e8
"""Probabilities in the laws that one search compares: some tens of seconds."""
SIDE_STEPS = 1e7
"""Steps of counting the paths on each side of the targets of a chain, some seconds."""
SPREAD_POINTS = 256
"""Moves that are told apart where a difference spreads over a network."""
SPREAD_TUPLES = 4000
"""Tuples of a forest in which that is followed from edge to edge, about a second."""

# Tables

FEW_DENSITIES = 2e7
"""Densities compared at once sooner than compiled code is loaded."""
FEW_LAWS = 2**22
"""Numbers in the laws of all events that are compared so."""
FEW_SETS = 1e8
"""Densities compared set by set in some tenths of a second."""
SET_WORK = 2e10
"""Densities compared set by set, at most."""
LOG_WORK = 1e9
"""Pairs of atom and output compared in log space, each an exponential."""
GRID_WORK = 3e11
"""Numbers on the grid of a vector, some minutes: with more outputs there is a bracket instead."""
LARGE_SET = 1024
"""Cells from which sorted mixtures compare one set per target sooner than the tree does."""
CLIMBED_TUPLES = 20
"""Tuples up to which the neighbours of an adversary are few beside all adversaries."""
KERNEL_NUMBERS = 2**24
"""Numbers in the kernel matrix."""
COUNTED_SETS = 2**13
"""Sets of unknown tuples that are worth counting."""
KEPT_NUMBERS = 2**22
"""Numbers in conditional laws, and distances, that are kept from one scale to the next."""
MOST_LEVELS = 4096
"""Values per coordinate of an answer on a grid."""
MOST_SUMS = 2**15
"""Sums of some tuples that are worth telling apart."""
DRAWN_DATABASES = 64
"""Databases drawn to see how tuples depend on each other."""

# Gaussian models

SINGLE_REGRESSIONS = 200
"""Tuples up to which regressions are made one by one: they round less."""
CLOSED = 1 + 5e-10
"""Ratio of upper to lower end up to which a bracket needs no search."""
NEARLY_CLOSED = 1 + 1e-6
"""The same where no search could finish."""
SEARCHED_TUPLES = 60
"""Tuples up to which one can."""
SIGNED_ANSWERS = 12
"""Answers released together: each pattern of their signs is one search."""
WRITTEN_TUPLES = 400
"""Tuples of a set whose worst member is written out as a matrix."""
SPARSE_STEPS = 1e11
"""Elementary steps of the elimination of a Gaussian network: some minutes."""
CAPPED_TARGETS = 200
"""Targets of a Gaussian network whose clamped bound is worked out entry by entry."""

# Other families

MEMBER_TUPLES = 24
"""Tuples of a set of laws of which a member is searched for the lower end."""
COMPOSED_MEMBERS = 200
"""Members of a group beyond which its mixtures are too many for several releases."""
COUPLED_MEMBERS = 400
"""Members of a group beyond which couplings of its counts are too many."""

# Lattices and transport

LATTICE_VALUES = 4096
"""Distinct contributions up to which a common step is sought exactly."""
LATTICE_PARTS = 4096
"""Parts into which the smallest contribution may be cut."""
TRANSPORT_REACH = 30.0
"""Nats above the level: transport at a higher price is left out."""
TRANSPORT_SIGHT = 8.0
"""Nats that the tolerance of the solver can tell apart."""
TRANSPORT_DUST = 1e-30
"""Share of the largest entry of a row below which an entry is left out."""

# Several releases

SEARCHED_RELEASES = 8
"""Releases whose joint outputs a search may go through."""
JOINT_CELLS = 2**12
"""Cells of a table searched for several answers."""
JOINT_OUTPUTS = 2**22
"""Answers times outputs of such a search."""
JOINT_WORK = 2e9
"""The same times everything that an adversary may know."""
DUAL_LAWS = 5e6
"""Numbers in the conditional laws of all adversaries together, for linear programs."""
DUAL_PROGRAM = 2**16
"""Cells of one plan of transport."""
DUAL_PROGRAMS = 300_000
"""Cells of all plans together: some seconds."""
JOINED_NUMBERS = 20_000
"""Tuples times answers of the releases that are weighed together."""
KEPT_SPENDING = 10 * JOINED_NUMBERS
"""The same before multiples of a query are counted as one."""

# The scale

FAR_ABOVE = 1.03
"""Factor on ε: whoever leaks more is dealt with before the others are searched."""
HASTY_SLACK = 0.25
"""Share of the scale added at once where no time is left."""
COARSEST_SLACK = 1e-4
"""Share of the scale by which the slack given to a bound may be too much."""
