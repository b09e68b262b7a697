"""Markup to Markdown: LaTeX, org and notebooks by their own rules, reStructuredText is in `rst`."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from graphrag_assets.reading.markdown import table_of
from graphrag_assets.reading.source_records import Problem, Record, document

# --- LaTeX ----------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"(?<!\\)%[^\n]*(?:\n[ \t]*|\Z)")
_BRACES = r"\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"
_MACRO = re.compile(
    rf"\\(?:(?:re|provide)?newcommand\*?|def)\s*\{{?\\([A-Za-z]+)\}}?(?:\[(\d)\])?(?:\[[^\]]*\])?(?:#\d)*\s*{_BRACES}"
)
_ACCENT = re.compile(r"\\([\"'`^~=.]|[Hcuvrkd](?![A-Za-z]))\s*(?:\{\s*(\\?[A-Za-z])\s*\}|(\\?[A-Za-z]))")
_MARKS = {
    **{'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "=": "\u0304", ".": "\u0307"},
    **{"H": "\u030b", "c": "\u0327", "u": "\u0306", "v": "\u030c", "r": "\u030a", "k": "\u0328", "d": "\u0323"},
}
_LETTERS = {
    **{"ss": "ß", "o": "ø", "O": "Ø", "ae": "æ", "AE": "Æ", "aa": "å", "AA": "Å", "l": "ł", "L": "Ł", "oe": "œ"},
    **{"ldots": "…", "dots": "…", "LaTeX": "LaTeX", "TeX": "TeX", "textbackslash": "\\", "textendash": "–"},
    **{"copyright": "©", "S": "§", "pounds": "£", "euro": "€", "textdegree": "°", "quad": " ", "and": ", "},
}
_LETTER = re.compile(rf"\\({'|'.join(sorted(_LETTERS, key=len, reverse=True))})(?![A-Za-z])(?:\{{\}}|[ \t]+)?")
_SECTIONS = {"part": 1, "chapter": 1, "section": 1, "subsection": 2, "subsubsection": 3, "paragraph": 4}
_SECTION = re.compile(rf"\\({'|'.join(_SECTIONS)})\*?(?:\[[^\]]*\])?\s*{_BRACES}")
_VERBATIM = re.compile(
    r"\\begin\{(verbatim|lstlisting|minted)\*?\}(?:\[[^\]\n]*\]|\{[^}\n]*\})*\n?(.*?)\\end\{\1\*?\}", re.S
)
_FORMULA = re.compile(
    r"\\begin\{(equation|align|gather|multline|eqnarray|displaymath)\*?\}(.*?)\\end\{\1\*?\}|\\\[(.*?)\\\]", re.S
)
_TABLE = re.compile(
    r"\\begin\{(tabular[xy*]?|longtable)\}(?:\[[^\]]*\])?(?:\{(?:[^{}]|\{[^{}]*\})*\})+(.*?)\\end\{\1\}", re.S
)
_ASIDE = re.compile(
    rf"\\(?:label|thanks|index|vspace|hspace|pagestyle|thispagestyle|bibliographystyle|bibliography|includegraphics|usepackage"
    rf"|documentclass|setlength|input|include|addbibresource|date|title|author)\*?(?:\[[^\]]*\])?\s*{_BRACES}"
)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^{}]*\}(?:\[[^\]\n]*\])?")
_WRAPPED = re.compile(rf"\\[A-Za-z]+\*?(?:\[[^\]\n]*\])*\s*{_BRACES}")
_MAX_EXPANDED = 10_000_000


def read_tex(text: str) -> Iterator[Record | Problem]:
    """Yield the one document of a LaTeX file: paragraphs, headings, lists, tables and notes, its macros expanded."""
    blocks: list[str] = []

    def block(markdown: str) -> str:
        blocks.append(markdown)
        return f"\n\n\x00{len(blocks) - 1}\x00\n\n"

    text = _VERBATIM.sub(lambda code: block(f"```\n{code[2].strip(chr(10))}\n```"), text)
    text = _expanded(_COMMENT.sub(_without_comment, text))
    about: dict[str, Any] = {}
    for name in ("title", "author", "date"):
        if argument := re.search(rf"\\{name}\s*(?:\[[^\]]*\])?{_BRACES}", text):
            about[name] = _tex_words(argument[1])
    body = re.search(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", text, re.S)
    text = _TABLE.sub(lambda table: block(_tex_table(table[2])), body[1] if body else text)
    text = _FORMULA.sub(lambda math: block(f"$$ {' '.join((math[2] or math[3]).split())} $$"), text)
    notes: list[str] = []

    def note(words: re.Match[str]) -> str:
        notes.append(f"[^{len(notes) + 1}]: {_tex_words(words[1])}")
        return f"[^{len(notes)}]"

    text = re.sub(rf"\\footnote(?:\[[^\]]*\])?{_BRACES}", note, text)
    text = _SECTION.sub(lambda title: block(f"{'#' * _SECTIONS[title[1]]} {_tex_words(title[2])}"), text)
    text = re.sub(r"\\item\s*(?:\[([^\]]*)\])?", lambda item: f"\n\n- {item[1] or ''} ", text)
    text = re.sub(r"\\bibitem(?:\[[^\]]*\])?\{[^}]*\}", "\n\n- ", text)
    paragraphs = [_tex_words(paragraph) for paragraph in re.split(r"\n\s*\n|\\par\b", _ENVIRONMENT.sub("\n\n", text))]
    lines = [re.sub("\x00(\\d+)\x00", lambda mark: blocks[int(mark[1])], paragraph) for paragraph in paragraphs]
    joined = re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(filter(None, (*lines, *notes))))
    yield document(joined, about, date=about.get("date"))


def _without_comment(comment: re.Match[str]) -> str:
    before = comment.string[: comment.start()].rpartition("\n")[2]
    return "" if before.strip() == "" else "\n" if comment.string[comment.end() : comment.end() + 1] == "\n" else " "


def _expanded(text: str) -> str:
    """Return LaTeX with its own macros expanded, and letters with accents."""
    macros = {name: (int(n or 0), words) for name, n, words in _MACRO.findall(text)}
    text = _MACRO.sub("", text)
    for _ in range(3 if macros else 0):  # macros may name others
        for n in {n for n, _ in macros.values()}:
            names = "|".join(re.escape(name) for name, (n_arguments, _) in macros.items() if n_arguments == n)
            pattern = rf"\\({names})(?![A-Za-z])" + (rf"\s*{_BRACES}" * n if n else r"(?:\{\})?")
            text = re.sub(
                pattern,
                lambda use: re.sub(r"#(\d)", lambda mark: (use.groups() + ("",) * 9)[int(mark[1])], macros[use[1]][1]),
                text,
            )
        if len(text) > _MAX_EXPANDED:
            break
    return _ACCENT.sub(_accented, text)


def _accented(accent: re.Match[str]) -> str:
    letter = (accent[2] or accent[3]).removeprefix("\\")
    return unicodedata.normalize("NFC", letter + _MARKS[accent[1]])


def _tex_words(text: str) -> str:
    """Return the words of a paragraph of LaTeX on one line, formulas as they are written."""
    parts = re.split(r"((?<!\\)\$[^$]+\$)", text)
    for number in range(0, len(parts), 2):
        words = _LETTER.sub(lambda letter: _LETTERS[letter[1]], _ASIDE.sub("", parts[number]))
        words = re.sub(r"\\(?:href|hyperref|textcolor|colorbox)(?:\[[^\]]*\]|\{[^{}]*\})", "", words)
        words = re.sub(r"\\[a-z]*cite[a-z]*\*?(?:\[[^\]]*\])*\{([^}]*)\}", r"[\1]", words)
        for _ in range(5):
            words = _WRAPPED.sub(r"\1", words)
        words = re.sub(r"\\\\(?:\[[^\]]*\])?|\\[,;:!/]", " ", words)
        words = re.sub(r"\\[A-Za-z]+\*?", "", words)
        parts[number] = (
            re.sub(r"\\([&%$#_{}\s])|(?<!\\)[{}]", r"\1", words)
            .replace("~", " ")
            .replace("``", "“")
            .replace("''", "”")
            .replace("---", "—")
            .replace("--", "–")
        )
    return " ".join("".join(parts).split()).replace(" ,", ",")


def _tex_table(text: str) -> str:
    text = re.sub(
        r"\\(?:hline|toprule|midrule|bottomrule|cline\{[^}]*\}|cmidrule(?:\([^)]*\))?\{[^}]*\}|endhead|endfoot)",
        "",
        text,
    )
    text = re.sub(
        r"\\multicolumn\{(\d{1,2})\}\{[^{}]*\}" + _BRACES, lambda cell: " & ".join([cell[2]] * int(cell[1])), text
    )
    rows = [
        [_tex_words(cell) for cell in re.split(r"(?<!\\)&", row)]
        for row in re.split(r"\\\\|\\tabularnewline", text)
        if row.strip()
    ]
    return table_of(rows)


# --- org ------------------------------------------------------------------------------------------------

_ORG_LINES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"^[ \t]*#\+begin_(?:src|example)[ \t]*(\S*).*$", re.M | re.I), r"```\1"),
    (re.compile(r"^[ \t]*#\+end_(?:src|example).*$", re.M | re.I), "```"),
    (re.compile(r"^[ \t]*#\+begin_comment.*?#\+end_comment[^\n]*\n?", re.M | re.I | re.S), ""),
    (re.compile(r"^[ \t]*:[A-Z_-]+:[ \t]*\n(?:.*\n)*?[ \t]*:END:[ \t]*\n?", re.M), ""),
    (re.compile(r"^[ \t]*#(?:\+[^\n]*|[ \t][^\n]*)?\n?", re.M), ""),
    (re.compile(r"^[ \t]*(?:SCHEDULED|DEADLINE|CLOSED):[^\n]*\n?", re.M), ""),
    (
        re.compile(r"^(\*+)[ \t]+(?:(?:TODO|DONE)[ \t]+)?(?:\[#[A-C]\][ \t]+)?(.*?)(?:[ \t]+:[\w@:]+:)?[ \t]*$", re.M),
        lambda title: f"\n{'#' * min(6, len(title[1]))} {title[2]}\n",
    ),
    (re.compile(r"^[ \t]*\|[-+]+\|[ \t]*$", re.M), lambda rule: "|" + " --- |" * (rule[0].count("+") + 1)),
    (re.compile(r"\[\[(?:[^\[\]]*\]\[)([^\[\]]+)\]\]"), r"\1"),
    (re.compile(r"\[\[([^\[\]]+)\]\]"), r"\1"),
    (re.compile(r"(?<![\w*/=~_+])([*/=~_+])(?=\S)([^\n]*?\S)\1(?![\w*/=~_+])"), r"\2"),
    (re.compile(r"\[fn:([\w-]+)\]"), r"[^\1]"),
    (re.compile(r"\n{3,}"), "\n\n"),
)


def read_org(text: str) -> Iterator[Record | Problem]:
    """Yield the one document of an org file, without comments, drawers and settings."""
    about = {name.lower(): value.strip() for name, value in re.findall(r"^#\+(\w+):[ \t]*(\S.*)$", text, re.M)}
    parts = re.split(
        r"(^[ \t]*#\+begin_(?:src|example).*?#\+end_(?:src|example)[^\n]*$)", text, flags=re.M | re.I | re.S
    )
    for number, part in enumerate(parts):
        for pattern, by in _ORG_LINES[: 2 if number % 2 else None]:
            part = pattern.sub(by, part)
        parts[number] = part
    yield document("".join(parts).strip(), about, date=about.get("date"))


# --- notebooks ------------------------------------------------------------------------------------------


def read_notebook(text: str) -> Iterator[Record | Problem]:
    """Yield the one document of a notebook: its cells, Markdown as it is, code and what it printed in fences."""
    notebook = json.loads(text)
    cells = notebook.get("cells") or [cell for sheet in notebook.get("worksheets", ()) for cell in sheet["cells"]]
    about = notebook.get("metadata", {})
    language = about.get("language_info", about.get("kernelspec", {})).get("name", "")
    blocks: list[str] = []
    for cell in cells:
        source = _joined(cell.get("source", cell.get("input", ""))).strip("\n")
        if cell["cell_type"] == "heading":  # nbformat 3
            source = f"{'#' * cell.get('level', 1)} {source}"
        blocks.append(f"```{language}\n{source}\n```" if cell["cell_type"] == "code" and source else source)
        for output in cell.get("outputs", ()):
            words = _joined(output.get("text", output.get("data", {}).get("text/plain", ""))).rstrip()
            if output.get("ename"):
                words = f"Error ({output['ename']}): {output.get('evalue', '')}"
            blocks.append(f"```\n{words}\n```" if words else "")
    yield document("\n\n".join(filter(None, blocks)), {"title": about.get("title")})


def _joined(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
