"""Constants that tune speed and memory, with their units, all in one place.

None of them affects whether a result is right: every bound and bracket stays certified whatever
values are chosen here. They decide how long a search takes, how much memory it needs, how tight a
bracket is where a search is cut short, and when progress is shown. Nothing depends on the number of
cores. Constants that correctness depends on are defined beside the code that needs them, and so are
those that are compiled into a kernel or shape one self-contained algorithm (grids, rounds,
thresholds of a certificate), each explained there.
"""

from __future__ import annotations

# What a terminal shows (seconds, except where said)

SILENT_SECONDS = 1.0
"""Work shorter than this shows no progress bar."""
REFRESH_SECONDS = 0.2
"""Between checks of the clock while threads work."""
COMPILING_SECONDS = 4
"""What compiling a family's code takes, as announced."""
SEARCHES_TO_HALF = 3
"""Searches after which a bar is half full; their total number is not known in advance."""

# Where compiled code takes over from NumPy

COMPILED_MEMBERS = 64
"""Members of a yes/no group beyond which events are compared in compiled code."""
COMPILED_CHAIN_STEPS = 4e8
"""Elementary steps of one search along a chain (`Setup.is_large`) beyond which it is compiled."""

# Memory (float64 numbers held at once)

CHUNK_NUMBERS = 2**20
"""Numbers held while densities of many events are evaluated."""
TOGETHER_NUMBERS = 2**16
"""Densities along a chain that NumPy computes side by side: about what a fast cache holds."""
TOGETHER_SIDES = 64
"""Left sides of windows that are evaluated together even so: fewer are not worth NumPy's calls."""
TOGETHER_AT_MOST = 2**18
"""Densities that these may have: about what a slower cache holds."""
SIDES_AT_ONCE = 16
"""Left sides of windows whose right ends are prepared at once."""
TOGETHER_LAWS = 2**20
"""Numbers in the laws of windows that are walked side by side, with Gaussian noise."""
SET_DISTANCES = 2**21
"""Distances of outputs from values, in a search of a set of tables."""
KEPT_LAWS = 2**22
"""Probabilities of conditional laws that a set of tables, or a group, keeps from one scale to the
next."""
KEPT_WINDOWS = 2**22
"""Numbers about the windows of a chain that are kept from one scale to the next."""
TREE_ARRAYS = 2**22
"""Numbers in the arrays of one pass through a tree."""

# Chains

FULL_LENGTH = 200
"""Tuples of a chain up to which all its windows are walked, without truncation."""
LONGEST_SIDE = 1000
"""Tuples on one side of a target beyond which no window is walked."""
CHAIN_STEPS = 4e9
"""Elementary steps of one search along a chain, at most."""
FORGETFUL = 10
"""Factor on the steps allowed for a chain that never forgets, where nothing else helps."""
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
TABLED_EVENTS = 100_000
"""Values that adversaries may know in a chain up to which several numbers are searched exactly."""
TABLED_BINARY = 16
"""Tuples of a chain of two states up to which they are."""
TABLED_CELLS = 2**20
"""Courses of a chain up to which they are where the adversary is named."""
SHORTEST_REACH = 4
"""Tuples on each side worth walking with Gaussian noise, at least."""

# Networks

COMPILED_NETWORK = 120
"""Tuples of a network beyond which budgets are passed on in compiled code."""
NEIGHBOURHOOD = 80
"""Tuples around a target that get an order of their own where a network is large."""
ELIMINATION_WORK = 5e7
"""Pairs of couplings that one order of elimination may process."""
ELIMINATION_EACH = 2e8
"""The same for the two passes that leave every target alone."""
ELIMINATION_REFINED = 2e8
"""The same for all targets together that get an order of their own."""
FRONT_PAIRS = 3000
"""The overhead of eliminating a tuple, in pairs of couplings."""

MOMENT_CELLS = 2**16
"""Numbers in the largest array of an exact sum over a network."""
MOMENT_NUMBERS = 2**21
"""Numbers in all arrays of such a sum."""
MOMENT_TOGETHER = 2**16
"""Numbers in an array about several fronts of such a sum, worked out together."""
MOMENT_EVENTS = 64
"""Values that one adversary may know, each of which takes such a sum."""
MOMENT_REGIONS = (40, 24, 12)
"""Tuples around a target, everyone else known, where the whole network is too much."""

# Trees

REGION_NUMBERS = 4e6
"""Probabilities that all views of the regions of a tree may have."""
REGION_EDGES = 1e6
"""Pairs of neighbouring edges that may be processed."""
REGION_REACH = 100
"""Steps from a target that a region reaches at most."""
REGION_TUPLES = 200
"""Tuples of a region for which a lattice is made."""
REGION_LATTICE = 512
"""Steps of a sum whose contributions must be rounded to a lattice."""
NEGLIGIBLE = 1e-12
"""Gain (nats) for which regions are not made larger."""
WORTHWHILE = 0.99
"""A round that leaves more than this share of a bound is the last one."""

# Sets of tables

SET_OUTPUTS = 100_000
"""Outputs of one adversary that are compared one by one."""
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
FEW_UNKNOWN = 9
"""Unknown tuples around a target, besides it, of a large network's lower end: a small table."""
SPREAD_POINTS = 256
"""Lengths of moves that are distinguished where a difference spreads over a network."""
SPREAD_TUPLES = 4000
"""Tuples of a forest in which the spread is followed from edge to edge: about a second."""
FEW_EXCEED = 0.2
"""Share of the tested pairs of laws; if more exceed the level sought, the level reached is used."""
SAMPLED_PAIRS = 4096
"""Pairs of laws after which a search may stop that has found too much leakage."""
FEW_ROWS = 8
"""Pairs of laws up to which levels are looked up one by one rather than sorted together."""
MANY_ANSWERS = 2048
"""Answers up to which the distances of all pairs are compared."""

# Tables

FEW_DENSITIES = 2e7
"""Densities up to which comparing them at once is faster than loading compiled code."""
FEW_LAWS = 2**22
"""Numbers in the laws of all events that are compared at once."""
FEW_SETS = 1e8
"""Densities compared set by set in some tenths of a second."""
SET_WORK = 2e10
"""Densities compared set by set, at most."""
LOG_WORK = 1e9
"""Pairs of atom and output compared in log space, each an exponential."""
GRID_WORK = 3e11
"""Numbers on the grid of a vector, some minutes: with more outputs there is a bracket instead."""
LARGE_SET = 1024
"""Cells from which sorted mixtures are faster than the tree for one set per target."""
CLIMBED_TUPLES = 20
"""Tuples up to which the neighbours of an adversary are few beside all adversaries."""
UNCLIMBED_CELLS = 2**14
"""Cells up to which everyone is searched as quickly as the neighbours of one adversary."""
KERNEL_NUMBERS = 2**24
"""Numbers in the kernel matrix."""
COUNTED_SETS = 2**13
"""Sets of unknown tuples that are worth counting."""
KEPT_NUMBERS = 2**22
"""Numbers in conditional laws, and distances, that are kept from one scale to the next."""
MOST_LEVELS = 4096
"""Values per coordinate of an answer on a grid."""
MOST_SUMS = 2**15
"""Different sums of some tuples, beyond which they are not listed."""
DRAWN_DATABASES = 64
"""Databases sampled to estimate how tuples depend on each other."""
BRANCH_NUMBERS = 2**22
"""Numbers in the first node of a branch; larger branches are cut further."""
CLIMBED_CELLS = 2**14
"""Hidden cells of an adversary who is tried while climbing."""
TREE_SMALL_WORK = 1e6
"""Outputs × leaves × secrets of a search that needs no second thread."""
TREE_BOUNDED_WORK = 2e9
"""The same, up to which comparing them is faster than compiling bounds."""
TREE_LONG_WORK = 1e9
"""The same, from which a good starting point is searched for first."""
TREE_HUGE_WORK = 3e10
"""The same, from which coarse passes come first if there is a deadline."""
COARSE_GAPS = (0.0526, 0.0)
"""What these passes may leave open, relative to the value: five per cent, then nothing."""
HIDDEN_SET_TUPLES = 9
"""Tuples from which comparing hidden sets is faster than the tree, and than NumPy."""
WHOLE_HIDDEN_TUPLES = 13
"""Tuples up to which a search through hidden sets is one part, in one thread."""
COMPARED_SET_TUPLES = 16
"""Tuples up to which comparing all sets is faster than compiling bounds."""
HIDDEN_SET_PARTS = 6
"""Tuples that cut a long search through hidden sets into parts."""
SORTED_SMALL_WORK = 1e5
"""Cells compared by sorted mixtures that need no second thread."""
SORTED_TOGETHER = 32
"""Unknown sets per task there."""
ODDS_ANSWERS = 2**11
"""Answers of all other tuples; beyond, all count as far apart as the furthest."""
ODDS_DISTANCES = 2**10
"""Distinct distances of answers; more are rounded up until there are this many."""
VECTOR_PROGRAM = 4096
"""Pairs of atoms in one linear program about vectors of answers."""
VECTOR_PROGRAMS = 400
"""Programs solved before the rest keeps its group bound."""
VECTOR_SET = 2e7
"""Exponentials for the events of one set that no linear program can settle."""
VECTOR_WORK = 1e9
"""The same for all sets."""
VECTOR_FAR_WORK = 1e8
"""Cells read for the laws of sets that are attacked at far outputs only."""
VECTOR_ROUNDS = 20
"""Rounds of coordinate ascent."""
VECTOR_STARTS = 3
"""Outputs from which it starts."""

# Gaussian models

SINGLE_REGRESSIONS = 200
"""Tuples up to which regressions are made one by one: they round less."""
CLOSED = 1 + 5e-10
"""Ratio of upper to lower end up to which a bracket needs no search."""
NEARLY_CLOSED = 1 + 1e-6
"""The same where no search could finish."""
SEARCHED_TUPLES = 60
"""Tuples up to which a search can finish."""
SIGNED_ANSWERS = 12
"""Answers released together: each pattern of their signs is one search."""
WRITTEN_NETWORK = 2000
"""Tuples of a Gaussian network whose covariance is written out."""
WRITTEN_TUPLES = 400
"""Tuples of a set whose worst member is written out as a matrix."""
SPARSE_STEPS = 1e11
"""Elementary steps of the elimination of a Gaussian network: some minutes."""
CAPPED_TARGETS = 200
"""Targets of a Gaussian network whose clamped bound is computed entry by entry."""
LARGEST_UNCOMPILED = 24
"""Tuples beyond which a search is compiled from the beginning."""
UNCOMPILED_WORK = 2e6
"""Nodes × tuples³: about a second, less than compiling takes."""
VISITED_AT_MOST = 2_000_000
"""Nodes after which a search without a deadline ends, with a certified bracket."""
OPEN_BYTES = 2**29
"""Bytes for open nodes."""
BATCHES = (64, 4096)
"""Fewest and most nodes judged together."""
BATCH_SHARE = 16
"""One in this many open nodes is judged at a time."""
BATCH_WORK = 4e8
"""Nodes × tuples³ of one batch."""
COMPILED_CALL_WORK = 1e9
"""Nodes × tuples³ of one call of compiled code."""
CLIMBS = ((768, 5e7, 2), (4096, 9e8, 4))
"""After how many nodes, and nodes × tuples³, the most promising attacks are climbed, and how many
of them: what a climb closes is worth more than it costs after fewer nodes of many tuples."""
NOISY_STARTS = 8
"""Adversaries that were worst at other scales from which a search with Gaussian noise starts."""
NOISY_CLIMBS = 12
"""Attacks that are climbed with Gaussian noise."""
NOISY_CLIMBING_WORK = 1e9
"""Products of numbers that these climbs may cost."""
COUNTED_MEMBERS = 200_000
"""Numbers of unknown members of each weight that are tried one by one."""
COUNTED_PIECES = 64
"""Pieces into which a range of correlations is divided where weights differ."""
SERIES_WINDOWS = 400
"""Points of a series all of whose windows are tried."""
MATRIX_MEMBERS = 60
"""Members of a group that is searched as a matrix."""

# Other families

MEMBER_TUPLES = 24
"""Tuples of a set of laws of which a member is searched for the lower end."""
COMPOSED_MEMBERS = 200
"""Members of a group beyond which its mixtures are too many for several releases."""
COUPLED_MEMBERS = 400
"""Members of a group beyond which couplings of its counts are too many."""
STREAM_STRETCH = 400
"""Steps on either side of a step that a lower end of an endless model uses."""

# Lattices and transport

LATTICE_VALUES = 4096
"""Distinct contributions up to which a common step is sought exactly."""
LATTICE_PARTS = 4096
"""Parts into which the smallest contribution may be cut."""
TRANSPORT_REACH = 30.0
"""Nats above the level: transport at a higher price is left out."""
TRANSPORT_SIGHT = 8.0
"""Nats that the solver's tolerance can resolve."""
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
"""The same times the number of values that an adversary may know."""
DUAL_LAWS = 5e6
"""Numbers in the conditional laws of all adversaries together, for linear programs."""
DUAL_PROGRAM = 2**16
"""Cells of one plan of transport."""
DUAL_PROGRAMS = 300_000
"""Cells of all plans together: some seconds."""
JOINED_NUMBERS = 20_000
"""Tuples times answers of the releases that are searched together."""
KEPT_SPENDING = 10 * JOINED_NUMBERS
"""The same before multiples of a query are counted as one."""

# The scale

FAR_ABOVE = 1.03
"""Factor on ε: an adversary who leaks more is handled before the others are searched."""
HASTY_SLACK = 0.25
"""Share of the scale added at once where no time is left."""
COARSEST_SLACK = 1e-4
"""Share of the scale to which the slack that an inexact bound needs is narrowed down."""
WASSERSTEIN_LAWS = 200_000
"""Conditional laws beyond which the Wasserstein baseline takes too long to list."""
