"""Our own files read back strictly: an edited or damaged field is one line that names it, never a repaired value."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rheo_core import InvalidInput

Read = TypeVar("Read", bound="Fields")


class Fields(BaseModel):
    """An object of a file: exactly these fields, each of its own type; true is no int, NaN no number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def read_fields(schema: type[Read], value: Any, place: str) -> Read:
    """The fields of an object; raises `InvalidInput` with the place and path of the first that is wrong."""
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
    # a union's branches are steps of pydantic's path, but none of the file's
    steps = [step for step in first["loc"] if step not in ("int", "str", "float")]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    found = "nothing" if first["type"] == "missing" else first["input"]
    expected = first["msg"].removeprefix("Input should be ")
    raise InvalidInput(f"{place}: {path.lstrip('.')}" if path else place, found, expected[0].lower() + expected[1:])
