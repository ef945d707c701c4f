"""Attacks on releases that really run."""
