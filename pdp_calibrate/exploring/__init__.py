"""A local page on which one can watch leakage change: ``pdp-calibrate explore``.

``pip install "pdp-calibrate[explore]"``. `subject` opens a file, `schema` holds columns that the
user types in, `answers` turns the form of the page into a job, `view` computes what the page shows
about it, and `server` serves it to one browser on this computer; `notebook` shows the same figures
in a notebook. The mathematics is that of the library: a job is calibrated as on the command line.
"""
