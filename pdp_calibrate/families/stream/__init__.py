"""Models without an end: what is told about any step, for ever."""
