"""The only place that reads rows."""
