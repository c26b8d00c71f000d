"""Many calls at once: batches of providers, Ray."""
