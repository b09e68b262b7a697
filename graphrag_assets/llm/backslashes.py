"""Backslashes that a model writes into JSON without escaping them: `\\beta` would be read as a backspace and "eta"."""

import re

_TEX = (
    "nabla|natural|ncong|nearrow|neq|newcommand|newline|newpage|nexists|ngeq|nleq|nobreakspace|noindent|nolimits|"
    "nonumber|normalsize|not|notag|notin|nparallel|nsubseteq|nu|nwarrow|table|tag|tan|tanh|tau|tbinom|text|textbf|textit|"
    "textrm|textsc|textsf|textstyle|texttt|tfrac|therefore|theta|thinspace|tilde|times|tiny|to|top|triangle|triangleq"
)
"""The commands of LaTeX that begin as the escapes of line breaks and tabs do."""
_PATH = re.compile(
    r'(?<![A-Za-z\\])[A-Za-z]:\\(?:[^\Wn]|n[^\\\s",;]*\\)[^\s",;]*'  # of Windows
    r"|(?:\\\\)?[\w.$-]+(?:\\[A-Za-z0-9][\w.$-]*)+"  # names joined by backslashes
)
_NO_ESCAPE = re.compile(r"^\\\\|^[A-Za-z]:|\\[^nrtu\W]")
"""In a path, what shows that its backslashes are no escapes: a share, a drive, or a letter that no escape has."""
_BACKSLASH = re.compile(
    rf"(?P<lone>\\(?:(?=(?:{_TEX})(?![A-Za-z]))|(?=r[A-Za-z])|(?=[bf])|(?=u(?![0-9a-fA-F]{{4}}))|(?=[^\W_])(?![nrtu])))"
    r"|\\.",
    re.DOTALL,
)


def with_backslashes(body: str) -> str:
    r"""JSON in which the backslashes that are meant as they are, are escaped.

    Before most letters they are no escapes, and no answer has backspaces, form feeds, or a carriage return before a
    letter. It may have line breaks and tabs: of these only commands of LaTeX, and names in paths, are taken for text.

    >>> print(with_backslashes(r'"\beta decay\n" "D:\tools" "HKLM\Software\run"'))
    "\\beta decay\n" "D:\\tools" "HKLM\\Software\\run"
    """
    if "\\" not in body:
        return body
    return _BACKSLASH.sub(lambda found: f"\\{found[0]}" if found["lone"] else found[0], _PATH.sub(_escaped, body))


def _escaped(path: re.Match[str]) -> str:
    if not _NO_ESCAPE.search(path[0]):
        return path[0]
    share = r"\\\\" if path[0].startswith("\\\\") else ""
    return share + re.sub(r"\\\\?", r"\\\\", path[0].removeprefix("\\\\") if share else path[0])
