"""The retriever test: where the reference document ranks."""
