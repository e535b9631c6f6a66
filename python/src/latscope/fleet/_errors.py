"""Errors of the fleet part."""

import re

from .._errors import Error


class FleetError(Error):
    """What a fleet command cannot do: its text says what is wrong, then what to do."""


def sentence(error: BaseException) -> str:
    """Returns the text of an error on one line. delta-rs draws a tree of causes, in colours."""
    text = re.sub(r"\x1b\[[0-9;]*m|<[^>]*>", "", str(error))
    causes = (" ".join(part.split()) for part in text.split("\N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}"))
    return ": ".join(cause for cause in causes if cause)
