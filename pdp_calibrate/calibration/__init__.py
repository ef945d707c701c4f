"""From ε to a proved scale, and from the scale to a release."""
