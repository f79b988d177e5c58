"""The fields of one document, taken one by one with their types; each fault is noted and reading goes on."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from attune.catalog.placement import placement_fault
from attune.catalog.refs import close_word, member_ref_fault, shown, unknown_word
from attune.catalog.schemas import schema_fault
from attune.catalog.sources.faults import Findings
from attune.catalog.version_constraints import constraint_fault

T = TypeVar("T")
D = TypeVar("D")

_WORDS = {str: "text", bool: "true or false", int: "an integer", dict: "a mapping", list: "a list"}


class Fields:
    """An absent field and a null are the same. A field that nobody asked for is ignored with a warning."""

    def __init__(
        self, file: str, document: Mapping[str, Any], findings: Findings, place: str = ""
    ) -> None:
        self.file = file
        self._values = document
        self._findings = findings
        self._place = place
        self._known: set[str] = set()

    def fault(self, field: str, rule: str) -> None:
        self._findings.fault(self.file, f"{self._place}{field}", rule)

    def warn(self, field: str, rule: str) -> None:
        self._findings.warn(self.file, f"{self._place}{field}", rule)

    def inner(self, name: str) -> "Fields":
        """The fields of a mapping in this document; messages name them with the way to them."""
        place = f"{self._place}{name}."
        return Fields(self.file, self.mapping(name), self._findings, place)

    def raw(self, *names: str) -> Any:
        """The value of the first name that is there: the others are its synonyms."""
        self._known.update(names)
        return next((v for name in names if (v := self._values.get(name)) is not None), None)

    def text(self, *names: str, default: str = "") -> str:
        return self._typed(str, names, default)

    def optional_text(self, *names: str) -> str | None:
        return self._typed(str, names, None)

    def required_text(self, *names: str) -> str:
        value = self.raw(*names)
        if value is None or value == "":
            self.fault(names[0], "is required")
            return ""
        return self.text(*names)

    def boolean(self, *names: str, default: bool) -> bool:
        return self._typed(bool, names, default)

    def integer(self, name: str, *, least: int, default: int | None = None) -> int | None:
        value = self._typed(int, (name,), default)
        if value is not None and not least <= value < 2**31:
            self.fault(name, f"must be at least {least}" if value < least else "is too large")
        return value

    def mapping(self, *names: str) -> dict[str, Any]:
        return self._typed(dict, names, {})

    def texts(self, *names: str) -> list[str]:
        values: list[Any] = self._typed(list, names, [])
        if not all(isinstance(value, str) for value in values):
            self.fault(names[0], "must be a list of texts")
            return []
        return values

    def choice(self, name: str, words: Collection[str], default: str) -> str:
        word = self.text(name, default=default)
        if word not in words:
            self.fault(name, unknown_word(word, words))
        return word

    def schema(self, *names: str) -> dict[str, Any] | None:
        value: dict[str, Any] | None = self._typed(dict, names, None)
        if value is not None and (wrong := schema_fault(value)):
            self.fault(".".join(part for part in (names[0], wrong.place) if part), wrong.rule)
        return value

    def placement(self, name: str, empty: T) -> T:
        value = self.raw(name)
        if value is None:
            return empty
        if rule := placement_fault(name, value):
            self.fault(name, rule)
            return empty
        found: T = value
        return found

    def sound(
        self, name: str, faults: Callable[[Any, str], Mapping[str, str]]
    ) -> dict[str, Any] | None:
        """An object that is judged as a whole; None where it is absent or has a fault."""
        value = self.raw(name)
        found = faults(value, name)
        for place, rule in found.items():
            self.fault(place, rule)
        return None if found else value

    def version_constraint(self, name: str) -> str | None:
        text = self.optional_text(name)
        if text is not None and (rule := constraint_fault(text)):
            self.fault(name, rule)
        return text

    def member_ref(self, pack_ref: str, ref: str, field: str = "ref") -> str:
        """Checks a ref that was read; an empty one was noted before."""
        if ref and (rule := member_ref_fault(ref, pack_ref)):
            self.fault(field, rule)
        return ref

    def finish(self) -> None:
        for name in self._values:
            if name not in self._known:
                meant = close_word(name, self._known)
                hint = f"; did you mean '{meant}'?" if meant else ""
                self.warn(name, f"an unknown field, which is ignored{hint}")

    def _typed(self, kind: type[T], names: tuple[str, ...], default: D) -> T | D:
        value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        hint = "; put it in quotes" if kind is str and not isinstance(value, dict | list) else ""
        written = shown(str(value)) if hint else f"a {_written(value)}"
        self.fault(names[0], f"must be {_WORDS[kind]}, not {written}{hint}")
        return default


def _written(value: object) -> str:
    kinds = {dict: "mapping", list: "list", str: "text", bool: "truth value"}
    return kinds.get(type(value), "number")
