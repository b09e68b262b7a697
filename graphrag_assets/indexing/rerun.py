"""What a run does again although nothing has changed."""

from enum import Enum


class Rerun(Enum):
    """What is done again although nothing has changed; answers still come from the ledger, at no cost."""

    NOTHING = "nothing"
    FAILED_UNITS = "failed_units"
    EXTRACTION = "extraction"
    REPORTS = "reports"
    EVERYTHING = "everything"
