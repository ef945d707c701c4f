"""Adapters between `pdp_calibrate` and other libraries, one small module each.

The core never imports this package, and each module loads its library when it is first used.
"""
