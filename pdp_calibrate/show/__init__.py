"""Words, figures and pages: they compute nothing."""
