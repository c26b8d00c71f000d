"""The engine: the one place that calls a model, for judges, answerers and optimisers alike."""
