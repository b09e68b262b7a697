"""Whether an answer says that the documents do not answer the question."""

from graphrag_assets.contracts.answering import CLOSEST, NO_ANSWER


def is_refusal(answer: str) -> bool:
    """Whether an answer refuses; the closest passages in place of an answer are a refusal, too."""
    return not answer.strip() or answer.startswith((NO_ANSWER, CLOSEST)) or NO_ANSWER in answer
