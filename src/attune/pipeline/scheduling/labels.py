"""Terms over a worker's labels: whether they match, and how they read. Pure."""

from collections.abc import Mapping

from attune.catalog.placement import LabelExpression, SelectorTerm


def says_something(term: SelectorTerm) -> bool:
    """A term without a condition is passed over: it would match everything, or bar it, by an oversight."""
    return bool(term.match_labels or term.match_expressions)


def matches(labels: Mapping[str, str], term: SelectorTerm) -> bool:
    """All that the term says."""
    return all(labels.get(key) == value for key, value in term.match_labels.items()) and all(
        _holds(labels, one) for one in term.match_expressions
    )


def in_words(term: SelectorTerm) -> str:
    parts = [f"{key}={value}" for key, value in sorted(term.match_labels.items())]
    parts += [_expression(one) for one in term.match_expressions]
    return " and ".join(parts)


def _holds(labels: Mapping[str, str], one: LabelExpression) -> bool:
    """A label that is not there is none of the values."""
    match one.operator:
        case "in":
            return labels.get(one.key) in one.values
        case "not_in":
            return labels.get(one.key) not in one.values
        case "exists":
            return one.key in labels
        case "does_not_exist":
            return one.key not in labels


def _expression(one: LabelExpression) -> str:
    values = f"({', '.join(one.values)})"
    match one.operator:
        case "in":
            return f"{one.key} in {values}"
        case "not_in":
            return f"{one.key} not in {values}"
        case "exists":
            return f"{one.key} (any value)"
        case "does_not_exist":
            return f"no {one.key}"
