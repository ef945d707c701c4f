"""Several releases about a table, or a set of tables: searched together if that is feasible."""

from __future__ import annotations

import math

import numpy as np

from pdp_calibrate.core.problem import Composer, Problem
from pdp_calibrate.core.tuning import JOINT_CELLS, JOINT_OUTPUTS, JOINT_WORK


class TableComposer(Composer):
    """Searches several answers together on a grid of outputs."""

    def is_searchable(self, problem: Problem) -> bool:
        """Whether the grid is small enough."""
        contributions = problem.contributions
        if contributions.coordinates == 1:
            return True
        sizes = tuple(len(domain) for domain in problem.model.domains if len(domain) > 1)
        if math.prod(sizes) > JOINT_CELLS:
            return False
        answers = contributions.in_every_cell().reshape(-1, contributions.coordinates)
        levels = [len(np.unique(column)) for column in answers.T]
        distinct = len(np.unique(answers, axis=0))
        outputs = math.prod(float(number) for number in levels)
        leaves = sum(math.prod(size + 1.0 for size in sizes) / (size + 1) * size for size in sizes)
        return outputs * distinct <= JOINT_OUTPUTS and outputs * leaves <= JOINT_WORK
