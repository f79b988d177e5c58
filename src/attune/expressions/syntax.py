"""The tree of an expression. `start` and `end` are its place in the source.

Chains of one precedence are one node, however long; so the depth of a tree is the depth of its parentheses.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Path(Node):
    """A name and the constant keys below it, such as `event.payload.hosts[0]`."""

    root: str
    keys: tuple[str | int, ...]

    @property
    def written(self) -> str:
        """In one way only, whichever of the ways it was written in."""
        return self.root + "".join(map(_written_key, self.keys))


@dataclass(frozen=True, slots=True)
class Access(Node):
    """Keys of a value that is not a plain path, or keys that are only known when it runs."""

    base: Node
    keys: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Listing(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negation(Node):
    """`not`."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Minus(Node):
    operand: Node


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """`or`: the first operand that holds, else the last."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conjunction(Node):
    """`and`: the first operand that does not hold, else the last."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """`first`, then each operator with its operand, from left to right."""

    first: Node
    steps: tuple[tuple[str, Node], ...]


def keyed(base: Node, keys: list[Node], end: int) -> Node:
    """The keys of a value, as one path as far as they are constants."""
    if isinstance(base, Path):
        constants = list(_leading_constants(keys))
        base = Path(base.root, (*base.keys, *constants), start=base.start, end=end)
        keys = keys[len(constants) :]
    return Access(base, tuple(keys), start=base.start, end=end) if keys else base


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the source."""
    yield node
    for child in _children(node):
        yield from walk(child)


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Access(base=base, keys=keys):
            return base, *keys
        case Call(arguments=nodes) | Listing(items=nodes):
            return nodes
        case Choice(operands=nodes) | Conjunction(operands=nodes):
            return nodes
        case Negation(operand=operand) | Minus(operand=operand):
            return (operand,)
        case Comparison(left=left, right=right):
            return left, right
        case Arithmetic(first=first, steps=steps):
            return first, *(operand for _, operand in steps)
    return ()


def _written_key(key: str | int) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f".{key}"
    return f"[{key!r}]"


def _leading_constants(keys: list[Node]) -> Iterator[str | int]:
    for key in keys:
        constant = _constant_key(key)
        if constant is None:
            return
        yield constant


def _constant_key(node: Node) -> str | int | None:
    if isinstance(node, Minus) and isinstance(node.operand, Literal):
        value = node.operand.value
        return -value if type(value) is int else None
    if isinstance(node, Literal) and (isinstance(node.value, str) or type(node.value) is int):
        return node.value
    return None
