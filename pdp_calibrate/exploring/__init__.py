"""A local page on which leakage can be seen to move: ``pdp-calibrate explore``.

``pip install "pdp-calibrate[explore]"``. `subject` opens a file, `schema` holds columns that are
typed, `answers` turns the form of the page into a job, `view` works out what the page says about
it, and `server` serves it to one browser on this computer; `notebook` shows the same figures in a
notebook. The mathematics is that of the library: a job is calibrated here as it is on the command
line.
"""
