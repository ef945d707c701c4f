"""A local page on which leakage can be seen to move: ``pdp-calibrate explore``.

``pip install "pdp-calibrate[explore]"``. `subject` opens a file, `answers` turns the form of the
page into a job, with the columns of `schema`, `view` works out what the page says about it, and `server` serves it to one
browser on this computer. The mathematics is that of the library: a job is calibrated here as it is
on the command line.
"""
