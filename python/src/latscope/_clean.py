"""Cleaning of texts of others, for a terminal, the log of a workflow or of a board's test, a spreadsheet, and
in JSON. All that the command `latscope-fleet` prints goes through here."""

import json
import re
import sys
from typing import Any, TextIO

#: What stands for a character that a terminal would obey, or show the text after it in another order.
_REPLACED = "\N{REPLACEMENT CHARACTER}"

#: Commands of the logs of GitHub (also those that begin a line) and Azure, and signals of LAVA.
_COMMAND = re.compile(r"#(?=#\[|#vso\[)|<(?=LAVA_SIGNAL_)", re.IGNORECASE)
_LINE = re.compile(r"^([^\S\n]*:)(?=:)", re.MULTILINE)


def clean(text: str) -> str:
    """Returns a text that a terminal shows and does not obey, and no line of which is a command of a log."""
    if not text.isprintable():
        text = "".join(one if one.isprintable() or one in "\n\t" else _REPLACED for one in text)
    return _LINE.sub(r"\1 ", _COMMAND.sub(r"\g<0> ", text))


def one_line(text: str) -> str:
    """Returns a clean text without line feeds and tabs."""
    return clean("".join(one if one.isprintable() else _REPLACED for one in text))


def cell(text: str) -> str:
    """Returns a clean text of CSV that no spreadsheet takes for a formula: such a text begins with a quote, a
    number does not."""
    text = one_line(text)
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    return text


def json_of(value: Any, is_toml: bool = False) -> str:
    """Returns JSON on one line, a text of it also in the form of TOML: the value is the same, for what
    `clean` would replace is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    text = "".join(one if one.isprintable() else _escaped(one, is_toml) for one in text)
    return _COMMAND.sub(lambda found: _escaped(found[0], is_toml), text)


def _escaped(letter: str, is_toml: bool) -> str:
    if is_toml:
        return f"\\U{ord(letter):08x}"
    return json.dumps(letter)[1:-1] if ord(letter) >= 1 << 16 else f"\\u{ord(letter):04x}"


def tell(text: str, file: TextIO | None = None) -> None:
    """Prints a clean text and a line feed, by default to standard output."""
    (file or sys.stdout).write(f"{clean(text)}\n")


def warn(text: str) -> None:
    """Prints a clean text and a line feed to standard error."""
    tell(text, sys.stderr)
