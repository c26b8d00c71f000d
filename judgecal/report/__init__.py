"""Results as documents, and the three renderers that draw them."""
