# SPDX-License-Identifier: Apache-2.0
"""One JSON text for one value: what is hashed, stored and sent between processes.

JSON has neither NaN nor infinities, and readers differ in what they make of `1.0` and `-0.0`. Here
every float comes back with the bits it had (NaN as *a* NaN), and equal values give equal texts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# The key of an object that stands for a float: {"float": "nan"}, {"float": "0x1.8p+3"}.
_TAG = "float"


def encode(value: Any, *, hex_floats: bool = False) -> str:
    """Write a value as canonical JSON: sorted keys, no spaces, ASCII.

    Parameters
    ----------
    value
        Nested mappings with string keys, sequences, strings, integers, booleans, None and floats.
    hex_floats
        Write finite floats in hexadecimal instead of the shortest decimal that reads back as the
        same float. For hashing: it leaves nothing to a printing algorithm.

    Raises
    ------
    TypeError
        The value holds something else (a NumPy scalar, say), or a mapping that looks like a tag.
    """
    plain = _plain(value, hex_floats=hex_floats)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def decode(text: str | bytes) -> Any:
    """Read what `encode` wrote; sequences come back as lists.

    Raises
    ------
    ValueError
        The text is not JSON, or holds a tag that names no float.
    """
    return json.loads(text, object_hook=_untag, parse_constant=_refuse)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON with floats in hexadecimal, as 64 hex digits."""
    return hashlib.sha256(encode(value, hex_floats=True).encode("ascii")).hexdigest()


def plain(value: Any, *, lacking: Callable[[float], Any] = str) -> Any:
    """A value in JSON's own types, for other programs to read.

    Parameters
    ----------
    value
        Nested records, mappings, sequences, NumPy's arrays and scalars, and JSON's own types.
    lacking
        What stands for NaN and the infinities, which JSON lacks: by default their text.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif hasattr(value, "tolist"):  # NumPy's, which few callers load
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(one, lacking=lacking) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, lacking=lacking) for one in value]
    return lacking(value) if isinstance(value, float) and not math.isfinite(value) else value


def null(_number: float) -> None:
    """Stand for a number that JSON lacks with its null."""


def _plain(value: Any, *, hex_floats: bool) -> Any:
    """Turn floats into what JSON can hold, and refuse what it cannot."""
    # Most values are text, and a sweep has millions of them.
    if type(value) is str:
        return value
    match value:
        # bool before int, and exact types: a NumPy float64 is a float that prints differently.
        case None | bool() | str():
            return value
        case int() | float() if type(value) not in (int, float):
            raise TypeError(f"{type(value).__name__} {value!r} has no canonical JSON")
        case int():
            return value
        case float():
            if math.isfinite(value) and not hex_floats:
                return value
            return {_TAG: value.hex()}
        case Mapping():
            if value.keys() == {_TAG}:
                raise TypeError(f"a mapping whose only key is {_TAG!r} would read back as a float")
            return {_name(k): _plain(v, hex_floats=hex_floats) for k, v in value.items()}
        case list() | tuple():
            return [_plain(item, hex_floats=hex_floats) for item in value]
        case _:
            raise TypeError(f"{type(value).__name__} has no canonical JSON")


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"key {key!r} of a mapping is not a string")
    return key


def _untag(mapping: dict[str, Any]) -> Any:
    if mapping.keys() != {_TAG}:
        return mapping
    text = mapping[_TAG]
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no float written as text")  # noqa: TRY004 - bad data
    return float.fromhex(text)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
