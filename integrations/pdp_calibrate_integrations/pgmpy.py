"""Bayesian networks of pgmpy: ``pip install "pdp-calibrate[pgmpy]"``.

A network that pgmpy learned, or read from one of the formats it knows, becomes a `Network`. Only
its variables, states and conditional tables are read, so nothing of pgmpy is imported here.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from pdp_calibrate import ModelError, Network


def network_of(model: Any, *, provenance: str = "assumed") -> Network:
    """Return the law of a pgmpy network of discrete variables.

    Parameters
    ----------
    model
        A `DiscreteBayesianNetwork` (`BayesianNetwork` in older versions) with a table for every
        variable.
    provenance
        Where its numbers come from; ``private`` if it was learned from secret rows.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD  # doctest: +SKIP
    >>> network_of(model)  # doctest: +SKIP
    Network(8 tuples, 12 couplings, assumed)
    """
    try:
        tables = [(node, model.get_cpds(node)) for node in model.nodes()]
    except AttributeError as error:
        raise ModelError(
            f"a Bayesian network of pgmpy is needed, got {type(model).__name__}."
        ) from error
    missing = [node for node, table in tables if table is None]
    if missing:
        raise ModelError(f"the network has no table for {missing[0]!r}.")
    factors: list[tuple[tuple[Hashable, ...], np.ndarray[Any, Any]]] = []
    domains: dict[Hashable, list[Hashable]] = {}
    for node, table in tables:
        domains[node] = list(table.state_names[node])
        factors.append((tuple(table.variables), np.asarray(table.values, dtype=np.float64)))
    for node, table in tables:
        for parent in table.variables[1:]:
            if list(table.state_names[parent]) != domains[parent]:
                raise ModelError(f"the states of {parent!r} differ in the table of {node!r}.")
    return Network(factors=factors, domains=domains, provenance=provenance)
