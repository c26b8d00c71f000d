"""What is tested beside the judge: the retriever, the answerer, whole systems, made questions."""
