"""What a conversion may take."""

from dataclasses import dataclass

OUT_OF_MEMORY = 3
"""Exit code of the worker after a file that needs more memory than the limit."""


@dataclass(frozen=True)
class ConversionLimits:
    """Limits of one file: seconds, megabytes of memory (on Linux only), and bytes of its Markdown text.

    They are far above what documents take: a file that needs more is broken, or made to do harm.
    """

    seconds: float = 300.0
    memory_mb: int = 1000
    max_output_bytes: int = 10_000_000
