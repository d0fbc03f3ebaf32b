"""Sites and links, the parts of a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from braid.errors import TopologyError, did_you_mean
from braid.model.checks import check, check_name, is_figure, shown

Property = str | int | float | bool | None
"""The value of a property of a site."""

Attribute = Literal["latency", "bandwidth", "cost_per_byte", "price_per_gb"]
ATTRIBUTES: tuple[Attribute, ...] = ("latency", "bandwidth", "cost_per_byte", "price_per_gb")


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two sites, usable both ways unless `one_way`. Unknown figures are None.

    `latency` is in seconds, `bandwidth` in bytes per second, `cost_per_byte` in any unit, `price_per_gb` in money.
    """

    source: str
    target: str
    latency: float | None = None
    bandwidth: float | None = None
    cost_per_byte: float | None = None
    price_per_gb: float | None = None
    one_way: bool = False

    def __post_init__(self) -> None:
        for end in (self.source, self.target):
            check_name(end, "the end of a link", TopologyError)
        check(self.one_way, bool, f"whether link {self.source} - {self.target} is one_way", TopologyError)
        if self.source == self.target:
            raise TopologyError(f"a link connects '{self.source}' with itself; leave it out: staying at a site is free")
        for name in ATTRIBUTES:
            figure = getattr(self, name)
            if figure is None:
                continue
            if not is_figure(figure):
                raise TopologyError(f"the {name} of link {self} cannot be {shown(figure)}; give a number of 0 or more")
            if type(figure) not in (int, float):
                object.__setattr__(self, name, float(figure))
        if self.bandwidth == 0:
            raise TopologyError(f"the bandwidth of link {self} cannot be 0; leave out a link that carries nothing")

    def __str__(self) -> str:
        return f"{self.source} {'->' if self.one_way else '-'} {self.target}"

    @classmethod
    def of(cls, value: object) -> Link:
        """A link as users and files write it: a `Link`, a mapping of its fields, or `(source, target, latency)`.

        The third element may also be a mapping of fields.
        """
        if isinstance(value, Link):
            return value
        if isinstance(value, Mapping):
            return cls._from_fields(value)
        if isinstance(value, tuple | list) and 2 <= len(value) <= 3:
            third: Any = value[2] if len(value) == 3 else {}
            attributes = third if isinstance(third, Mapping) else {"latency": third}
            return cls._from_fields({"source": value[0], "target": value[1], **attributes})
        raise TopologyError(f"a link is (source, target, latency) or a mapping of its fields, not {value!r}")

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any]) -> Link:
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise TopologyError(f"a link has no field '{name}'; {did_you_mean(str(name), known)}")
        for end in ("source", "target"):
            if not isinstance(values.get(end), str):
                raise TopologyError(f"a link needs the name of its {end}, not {values.get(end)!r}")
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Site:
    """A place where streams start, joins run or results are delivered; its properties are free to choose."""

    name: str
    properties: Mapping[str, Property] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a site", TopologyError)
        check(self.properties, Mapping, f"the properties of site '{self.name}'", TopologyError)
        object.__setattr__(self, "properties", dict(self.properties))

    @classmethod
    def of(cls, value: object) -> Site:
        """A site as users and files write it: a `Site`, its name, or a mapping with its name and properties."""
        if isinstance(value, Site):
            return value
        if isinstance(value, str):
            return cls(value)
        if isinstance(value, Mapping) and isinstance(value.get("name"), str):
            properties = {key: property_ for key, property_ in value.items() if key != "name"}
            return cls(value["name"], properties)
        raise TopologyError(f"a site is a name, or a mapping with a 'name' and properties, not {value!r}")
