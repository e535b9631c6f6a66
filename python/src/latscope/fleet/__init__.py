"""latscope.fleet: results of many machines in one lake of Delta tables. See docs/fleet.md and
docs/lake.md."""

from ._errors import FleetError
from ._lake import Lake

__all__ = ["FleetError", "Lake"]
