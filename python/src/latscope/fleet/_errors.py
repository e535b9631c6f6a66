"""Errors of the fleet part."""

from .._errors import Error


class FleetError(Error):
    """What a fleet command cannot do: its text says what is wrong, then what to do."""
