"""From frames to models and statistics; sufficient statistics are taken through narwhals."""
