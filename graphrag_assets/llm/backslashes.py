"""Backslashes that a model writes into JSON without escaping them: `\\beta` would be read as a backspace and "eta"."""

import re

_TEX = (
    "nabla|neq|not|notin|nu|rangle|ref|rho|right|rightarrow|rm|tan|tau|text|textbf|textit|textrm|tfrac|theta|tilde|"
    "times|to|top|triangle"
)
"""The commands of LaTeX that begin as the escapes of line breaks and tabs do."""
_BACKSLASH = re.compile(
    r'(?<![A-Za-z\\])(?P<path>[A-Za-z]:\\(?:[^\Wn]|n[^\\\s",;]*\\)[^\s",;]*)'  # of Windows
    rf"|(?P<lone>\\(?=(?:{_TEX})(?![A-Za-z]))|\\(?=[bf])|\\(?=u(?![0-9a-fA-F]{{4}}))|\\(?=[^\W_])(?![nrtu]))"
    r"|\\.",
    re.DOTALL,
)
_IN_PATH = re.compile(r"\\\\?")


def with_backslashes(body: str) -> str:
    r"""JSON in which the backslashes that are meant as they are, are escaped.

    Before most letters they are no escapes, and no answer has backspaces or form feeds. It may have line breaks and
    tabs: of these only commands of LaTeX and paths of Windows are taken for text.

    >>> print(with_backslashes(r'"\beta decay\n" "D:\tools"'))
    "\\beta decay\n" "D:\\tools"
    """

    def escaped(found: re.Match[str]) -> str:
        if found["path"]:
            return _IN_PATH.sub(r"\\\\", found["path"])
        return f"\\{found[0]}" if found["lone"] else found[0]

    return _BACKSLASH.sub(escaped, body) if "\\" in body else body
