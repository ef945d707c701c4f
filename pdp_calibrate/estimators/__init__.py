"""From a frame to a model, scikit-learn style, and to correlations."""
