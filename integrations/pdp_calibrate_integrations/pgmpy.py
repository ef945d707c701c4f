"""Bayesian networks of pgmpy: ``pip install "pdp-calibrate[pgmpy]"``.

A network that pgmpy learned, or read from one of the formats it knows, becomes a `Network`;
`read_bif` reads the files in which the classic networks are published.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pdp_calibrate import ModelError, Network, SourceError
from pdp_calibrate_integrations.requiring import require

_ROUNDED = 1e-3  # how far the probabilities of a published row may be from 1 together


def read_bif(
    path: str | os.PathLike[str],
    *,
    values: Mapping[str, Hashable] | None = None,
    provenance: str = "assumed",
) -> Network:
    """Read a Bayesian network from a BIF file, or one compressed with gzip (``.bif.gz``).

    Parameters
    ----------
    path
        The file.
    values, provenance
        As for `network_of`.

    Examples
    --------
    >>> read_bif("cough.bif", values={"yes": 1, "no": 0})  # doctest: +SKIP
    Network(2 tuples, 1 couplings, assumed)
    """
    file = Path(path)
    try:
        content = file.read_bytes()
        text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{file} cannot be read as a BIF file: {type(error).__name__}."
        ) from error
    readwrite = require("pgmpy.readwrite", extra="pgmpy")
    try:
        model = readwrite.BIFReader(string=text).get_model()
    except Exception as error:  # pgmpy raises whatever its parser meets
        raise ModelError(
            f"pgmpy cannot read {file} as a BIF file: {type(error).__name__}."
        ) from error
    return network_of(model, values=values, provenance=provenance)


def network_of(
    model: Any,
    *,
    values: Mapping[Any, Hashable] | None = None,
    provenance: str = "assumed",
) -> Network:
    """Return the law of a pgmpy network of discrete variables.

    Probabilities that were rounded, and sum to 1 to three digits only, are normalised.

    Parameters
    ----------
    model
        A `DiscreteBayesianNetwork` (`BayesianNetwork` in older versions) with a table for every
        variable.
    values
        What the states stand for, such as ``{"yes": 1, "no": 0}``, so that they can be added up.
        States that are not listed keep their names, which can be counted.
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
    if not tables:
        raise ModelError("the network has no variable.")
    missing = [node for node, table in tables if table is None]
    if missing:
        raise ModelError(f"the network has no table for {missing[0]!r}.")
    factors: list[tuple[tuple[Hashable, ...], np.ndarray[Any, Any]]] = []
    domains: dict[Hashable, list[Hashable]] = {}
    for node, table in tables:
        domains[node] = list(table.state_names[node])
        factors.append((tuple(table.variables), _normalised(node, table.values)))
    for node, table in tables:
        for parent in table.variables[1:]:
            if list(table.state_names[parent]) != domains[parent]:
                raise ModelError(f"the states of {parent!r} differ in the table of {node!r}.")
    labels = {} if values is None else values
    return Network(
        factors=factors,
        domains={
            node: [labels.get(state, state) for state in states] for node, states in domains.items()
        },
        provenance=provenance,
    )


def _normalised(node: Hashable, table: Any) -> np.ndarray[Any, Any]:
    """Divide the laws of a variable, along the first axis, by their sums.

    A network multiplies factors of any size: a law that does not sum to 1 would change the others.
    """
    laws = np.asarray(table, dtype=np.float64)
    sums = laws.sum(axis=0)
    if not (np.all(laws >= 0) and np.all(np.abs(sums - 1) <= _ROUNDED)):
        raise ModelError(
            f"the probabilities of {node!r} must be laws: at least 0, with a sum of 1."
        )
    return np.asarray(laws / sums)
