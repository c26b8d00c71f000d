import dspy


class Answer(dspy.Signature):
    """Answer the question in these steps:

    1. Read the whole context with care.
    2. Work out what exactly is asked.
    3. Answer clearly and concisely, from the context alone.
    4. If the context does not hold the answer, say that it cannot be found there.
    5. Assume nothing that the context does not state.
    6. Address the question directly.
    7. Repeat neither the context nor the question.
    """

    context: str = dspy.InputField(desc="passages that may hold the answer")
    question: str = dspy.InputField(desc="what the user wants to know")
    answer: str = dspy.OutputField(desc="a short, direct answer, or that it cannot be found in the context")
