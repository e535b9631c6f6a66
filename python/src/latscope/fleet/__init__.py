"""latscope.fleet: results of many machines in one lake of Delta tables. See docs/fleet.md and docs/lake.md."""

from ._errors import FleetError


__all__ = ["FleetError"]
