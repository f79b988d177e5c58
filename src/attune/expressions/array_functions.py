"""Functions over arrays, objects, and what strings and arrays have in common."""

from attune.expressions.arguments import (
    a_string,
    a_string_or_array,
    a_whole_number,
    an_array,
    an_object,
)
from attune.expressions.budget import ITEM, NEW_TEXT, Budget
from attune.expressions.errors import Unfit
from attune.expressions.operators import order
from attune.expressions.values import identity, measure, named, same


def length(_: Budget, value: object) -> object:
    if not isinstance(value, str | list | dict):
        raise Unfit(f"{named(value)} has no length")
    return len(value)


def keys(budget: Budget, value: object) -> object:
    return list(_items(an_object(value), budget))


def values(budget: Budget, value: object) -> object:
    return list(_items(an_object(value), budget).values())


def merge(budget: Budget, *objects: object) -> object:
    """The keys of all; of those with the same name the last counts, whole."""
    merged: dict[str, object] = {}
    for given in objects:
        merged |= _items(an_object(given), budget)
    return merged


def backwards(budget: Budget, value: object) -> object:
    return _either(value, budget)[::-1]


def sort(budget: Budget, value: object) -> object:
    items = _array(value, budget)
    budget.spend(len(items) * len(items).bit_length())
    return sorted(order(items))


def unique(budget: Budget, value: object) -> object:
    """The first of each, in their order."""
    items = an_array(value)
    measure(items, budget)
    found: dict[object, object] = {}
    for item in items:
        found.setdefault(identity(item), item)
    return list(found.values())


def flat(budget: Budget, value: object) -> object:
    """One level: arrays in the array give way to their items."""
    items = _array(value, budget)
    found: list[object] = []
    for item in items:
        if isinstance(item, list):
            budget.spend(len(item) * ITEM)
            found.extend(item)
        else:
            found.append(item)
    return found


def pairs(budget: Budget, *arrays: object) -> object:
    """As many as the shortest array has items."""
    given = [an_array(array) for array in arrays]
    shortest = min(map(len, given))
    budget.spend(shortest * (len(given) * ITEM + NEW_TEXT))
    return [list(items) for items in zip(*given, strict=False)]


def number_range(budget: Budget, first: object, end: object = None, step: object = 1) -> object:
    """range(end), range(start, end) or range(start, end, step); the end itself is left out."""
    start, stop = (0, first) if end is None else (first, end)
    stride = a_whole_number(step)
    if stride == 0:
        raise Unfit("the step is zero")
    numbers = range(a_whole_number(start), a_whole_number(stop), stride)
    # Not len(): it fails for more than 64 bits can count.
    budget.spend(max(0, (numbers.stop - numbers.start) // stride + 1) * 2 * ITEM)
    return list(numbers)


def cut(budget: Budget, value: object, start: object, end: object = None) -> object:
    """From `start` up to but without `end`; below zero they count from the back."""
    given = _either(value, budget)
    return given[a_whole_number(start) : None if end is None else a_whole_number(end)]


def chunks(budget: Budget, value: object, size: object) -> object:
    items, step = _array(value, budget), a_whole_number(size)
    if step < 1:
        raise Unfit("a chunk has at least one item")
    budget.spend(len(items) // step * NEW_TEXT)
    return [items[place : place + step] for place in range(0, len(items), step)]


def index_of(budget: Budget, haystack: object, needle: object) -> object:
    """Where it is first found, from 0; -1 if nowhere."""
    given = _either(haystack, budget)
    if isinstance(given, str):
        return given.find(a_string(needle))
    return next((place for place, item in enumerate(given) if same(item, needle, budget)), -1)


def count(budget: Budget, haystack: object, needle: object) -> object:
    given = _either(haystack, budget)
    if isinstance(given, str):
        sought = a_string(needle)
        if not sought:
            raise Unfit("the string to look for is empty")
        return given.count(sought)
    return sum(same(item, needle, budget) for item in given)


def _array(value: object, budget: Budget) -> list[object]:
    items = an_array(value)
    budget.spend(len(items) * ITEM)
    return items


def _either(value: object, budget: Budget) -> str | list[object]:
    given = a_string_or_array(value)
    budget.spend(len(given) * (1 if isinstance(given, str) else ITEM))
    return given


def _items(value: dict[str, object], budget: Budget) -> dict[str, object]:
    budget.spend(len(value) * ITEM)
    return value
