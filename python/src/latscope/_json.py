"""Checked access to parsed JSON. Every function raises ValueError, which names the field and what it has."""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

Object: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

#: Largest number of samples that a result may have: beyond it, floating point does not count.
LARGEST = 2**53


def get(of: Object, name: str, kind: type[T], default: T | None = None) -> T:
    """Returns a field of a type; the default, if there is one, where it is absent or null."""
    value = of.get(name)
    if value is None and default is not None:
        return default
    return checked(value, name, kind)


def checked(value: object, name: str, kind: type[T]) -> T:
    """Returns a value that has a type. True and false are no numbers, and whole numbers are numbers with
    fraction."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {value!r:.60}, not {kind.__name__}")
    return value


def natural(of: Object, name: str, default: int | None = None) -> int:
    """Returns a field that is a number of 64 bits without sign."""
    value = get(of, name, int, default)
    if not 0 <= value < 2**64:
        raise ValueError(f"{name} is {value}, beyond 64 bits")
    return value


def count(of: Object, name: str) -> int | None:
    """Returns a count, None where it is null: an imported result does not say."""
    value = None if of.get(name) is None else natural(of, name)
    if value is not None and value > LARGEST:
        raise ValueError(f"{name} is {value}, above 2^53")
    return value


def number(of: Object, name: str) -> float | None:
    """Returns a number, None where it is null or absent."""
    value = of.get(name)
    return None if value is None else checked(value, name, float)


def objects(of: Object, name: str) -> list[dict[str, Any]]:
    """Returns a list of objects, empty where it is absent."""
    return [checked(item, f"{name}[]", dict) for item in get(of, name, list, [])]
