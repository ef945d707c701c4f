"""Gaussian groups: the second section about units whose members are alike; see `learning_alike`."""

from tests.benchmarks.learning_alike import group_cases as cases

__all__ = ["cases"]
