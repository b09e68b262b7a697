"""Properties that a file states of itself, but for those that a program has filled in."""

import re

_GENERATED = re.compile(
    r"\W*(?:untitled\w*|unknown|anonymous|unspecified|.*\.\w{2,5}|microsoft \w+ - .*|powerpoint[ -]pr\w+|document ?\d*"
    r"|dokument ?\d*|slide ?\d*|folie ?\d*|title|no title|presentation ?\d*)?\W*",
    re.IGNORECASE,
)


def stated(value: str | None) -> str | None:
    """Return a property, None if it is a file name or what programs write of themselves."""
    return value.strip() if value and not _GENERATED.fullmatch(value.strip()) else None
