"""A soak: random histories with kills, hostile inputs and answers, and concurrent processes, for an hour.

    make soak
    SOAK_MINUTES=8 SOAK_SEED=3 make soak

The length scales all parts and what they must reach, which is printed at the end: less is a violation, too. Ends with
1 when anything was violated; the seed repeats what was done, except for the moments of kills that are a time.
"""

import math
import os
import random
import sys

from tests.soak.answers import soak_answers
from tests.soak.histories import soak_histories
from tests.soak.inputs import soak_inputs
from tests.soak.load import soak_load
from tests.soak.summary import Summary

if __name__ == "__main__":
    minutes = float(os.environ.get("SOAK_MINUTES", "60"))
    seed = int(os.environ.get("SOAK_SEED", random.randrange(10**6)))
    summary = Summary()
    summary.tell(f"SOAK_MINUTES={minutes:g} SOAK_SEED={seed}")
    soak_inputs(summary, number=math.ceil(5 * minutes), seed=seed)
    soak_answers(summary, number=math.ceil(minutes), seed=seed)
    soak_load(summary, minutes / 6)
    soak_histories(summary, 0.6 * minutes, seed)
    summary.print()
    sys.exit(bool(summary.violations))
