"""The answerer test: every model x prompt on the same questions, the right document in hand, one judge."""
