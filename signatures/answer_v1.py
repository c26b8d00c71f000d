import dspy


class Answer(dspy.Signature):
    """You are a helpful assistant. Answer the question from the given context."""

    context: str = dspy.InputField(desc="passages that may hold the answer")
    question: str = dspy.InputField(desc="what the user wants to know")
    answer: str = dspy.OutputField(desc="the answer to the question")
