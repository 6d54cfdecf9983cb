"""`Record`, the base of every row and fact type.

A dataclass costs 11 ms to import and 0.7 ms a class, which a hook cannot pay; a bare
tuple has no types. A `Record` reads its fields from the annotations of the class.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        """Do nothing: only the type checker reads it."""
        return lambda cls: cls


@dataclass_transform(frozen_default=False)
class Record:
    """Fields are the annotations of the class itself, in order; a class value is a default."""

    if not TYPE_CHECKING:
        fields = ()

        def __init_subclass__(cls) -> None:
            """Note the field names once, when the class is made."""
            own = tuple(cls.__dict__.get("__annotations__", ()))
            cls.fields = tuple(name for base in cls.__bases__ for name in base.fields) + own

        def __init__(self, *values, **named) -> None:
            """Take values by position or name; what is left out must have a default."""
            given = self.__dict__
            given.update(zip(self.fields, values, strict=False))
            given.update(named)
            for name in self.fields:
                if name not in given and not hasattr(self, name):
                    message = f"{type(self).__name__} needs {name}"
                    raise TypeError(message)

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.__dict__.update(changes)
        return new

    def __eq__(self, other: object) -> bool:
        """Equal when the same type holds the same values."""
        return type(other) is type(self) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # records may change; nothing may key on one

    def __repr__(self) -> str:
        """Show what is set, for test failures and the diagnostics log."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({shown})"


def columns(record: type[Record], prefix: str = "") -> str:
    """The column list of a SELECT for this record, so that SQL and type cannot drift apart."""
    names: tuple[str, ...] = record.fields  # type: ignore[attr-defined]
    return ", ".join(prefix + name for name in names)
