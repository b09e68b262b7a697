"""What a model writes besides its answer: thoughts, which some servers leave in the text, and lone backslashes.

Thoughts stand between tags (`<think>`, `◁think▷`, `[THINK]`, and others, in any case), or in channels of OpenAI's
format "harmony". Some servers leave out the opening tag: then everything before the closing tag is thoughts.

Backslashes that a model writes into JSON without escaping them would be escapes: `\\beta` a backspace and "eta".
"""

import json
import re
from contextlib import suppress

_NAMES = "think|thinking|thought|thoughts|reasoning|seed:think"
_MARK = re.compile(
    rf"(?P<quoted>`?)(?:(?P<open><(?:{_NAMES})>|◁think▷|\[(?:think|reason)\]|<\|begin_of_thought\|>|<\|channel>)"
    rf"|(?P<close></(?:{_NAMES})>|◁/think▷|\[/(?:think|reason)\]|<\|end_of_thought\|>|<channel\|>)"
    r"|(?P<frame><\|(?:begin|end)_of_solution\|>)"
    r"|<\|(?P<harmony>channel|message|end|return|start|call)\|>)",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(r"`?(?:[<◁\[](?:[/|]?[^\W\d][^<>◁▷\[\]\n]{0,20}\|?|[/|])?)?$")
"""The end of a text that may be the beginning of a mark."""


class AnswerReader:
    """Reads a reply that may come in pieces. A mark directly after a backtick is quoted, and part of the answer.

    `holds_back`: replies are known to begin with thoughts that no tag opens: nothing is shown before the closing tag.
    """

    def __init__(self, holds_back: bool = False) -> None:
        self.lacked_opening_tag = False
        self._pending = ""  # what may be the beginning of a mark
        self._answer = list[str]()
        self._hidden = list[str]()  # since the answer was interrupted
        self._interruption = "unopened" if holds_back else ""
        self._opened = False

    @property
    def answer(self) -> str:
        """The answer so far."""
        return "".join(self._answer)

    def feed(self, piece: str, last: bool = False) -> str:
        """Return the part of the answer that is new. What turns out to be thoughts later cannot be taken back."""
        text, pieces, done = self._pending + piece, list[str](), 0
        for mark in _MARK.finditer(text):
            pieces.append(self._take(text[done : mark.start()]))
            if mark["quoted"]:
                pieces.append(self._take(mark.group()))
            else:
                self._turn(mark)
            done = mark.end()
        rest = text[done:]
        end = len(rest) if last else _UNFINISHED.search(rest).start()  # type: ignore[union-attr]  # matches always
        self._pending = rest[end:]
        pieces.append(self._take(rest[:end]))
        if last and self._interruption in ("unopened", "within"):  # it was part of the answer after all
            self._interruption = ""
            pieces.append(self._take("".join(self._hidden)))
        return "".join(pieces)

    def _take(self, text: str) -> str:
        if self._interruption:
            self._hidden.append(text)
            return ""
        if self._opened and not self._answer:
            text = text.lstrip()
        if text:
            self._answer.append(text)
        return text

    def _turn(self, mark: re.Match[str]) -> None:
        """Go from answer to thoughts, or back; nothing of a mark is part of the answer."""
        if mark["frame"]:
            return
        if mark["open"]:
            if not self._interruption or self._interruption == "unopened":
                within = bool(self.answer.strip())
                self._interruption = "within" if within else "thoughts"
                self._hidden = [mark.group()]
        elif mark["close"]:
            if self._interruption not in ("thoughts", "within"):
                self.lacked_opening_tag = True
                self._answer.clear()
            self._resume()
        elif mark["harmony"].lower() == "message":
            if self._interruption == "header" and "final" in "".join(self._hidden):
                self._answer.clear()
                self._resume()
            elif self._interruption == "header":
                self._interruption = "thoughts"
        else:
            self._interruption = "header" if mark["harmony"].lower() == "channel" else "thoughts"
            self._hidden.clear()

    def _resume(self) -> None:
        self._interruption, self._opened = "", True
        self._hidden.clear()


def without_thoughts(text: str) -> str:
    """Return the answer in a whole reply. What is JSON as a whole is the answer, whatever it quotes.

    >>> without_thoughts("<think>Is it Ada?</think>It is Ada.")
    'It is Ada.'
    """
    return read_whole(text)[0]


def read_whole(text: str) -> tuple[str, bool]:
    """Return the answer in a whole reply, and whether the opening tag of its thoughts was missing."""
    if not _MARK.search(text) or is_json(text):
        return text, False
    reader = AnswerReader()
    reader.feed(text, last=True)
    return reader.answer, reader.lacked_opening_tag


def is_json(text: str) -> bool:
    """Whether the whole text is a JSON object or list."""
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(text, strict=False), dict | list)
    return False


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
    return _BACKSLASH.sub(lambda match: f"\\{match[0]}" if match["lone"] else match[0], _PATH.sub(_escaped, body))


def _escaped(path: re.Match[str]) -> str:
    if not _NO_ESCAPE.search(path[0]):
        return path[0]
    share = r"\\\\" if path[0].startswith("\\\\") else ""
    return share + re.sub(r"\\\\?", r"\\\\", path[0].removeprefix("\\\\") if share else path[0])
