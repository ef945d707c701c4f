"""Attacks on real releases."""
