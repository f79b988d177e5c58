"""Attune: event-driven automation with order and limits you can prove."""

from importlib.metadata import version

__version__ = version("attune-engine")
