"""A RabbitMQ home with only the plugins a node needs.

Erlang looks for each of the thousand modules of a node in every plugin's directory. With a third of the directories
a node starts in two thirds of the time.
"""

import re
from pathlib import Path

NEEDED = ("rabbit", "rabbitmq_management")


def make_home(real: Path, home: Path) -> Path:
    """Links to the scripts and the needed plugins; the real home where plugins are packed otherwise."""
    plugins = _plugins(real / "plugins")
    if not set(NEEDED) <= plugins.keys():
        return real
    (home / "plugins").mkdir(parents=True)
    (home / "sbin").symlink_to(real / "sbin")
    for name in _with_dependencies(plugins):
        (home / "plugins" / plugins[name].name).symlink_to(plugins[name])
    return home


def _plugins(directory: Path) -> dict[str, Path]:
    """Plugin directories by name, which are called `name-version`."""
    found = directory.glob("*-*/ebin/*.app")
    return {path.stem: path.parent.parent for path in found}


def _with_dependencies(plugins: dict[str, Path]) -> set[str]:
    needed: set[str] = set()
    waiting = list(NEEDED)
    while waiting:
        name = waiting.pop()
        if name in plugins and name not in needed:
            needed.add(name)
            waiting.extend(_dependencies((plugins[name] / "ebin" / f"{name}.app").read_text()))
    return needed


def _dependencies(application: str) -> list[str]:
    """The applications an Erlang application resource names as needed."""
    match = re.search(r"\{\s*applications\s*,\s*\[(.*?)\]", application, re.DOTALL)
    return re.findall(r"\w+", match.group(1)) if match else []
