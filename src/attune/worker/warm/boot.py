"""The first lines that a warm interpreter runs: they make our few modules importable there, and nothing else of ours."""

from typing import Final

BOOT: Final = """\
import sys
_attune_boot = True
_at_start = frozenset(name.partition(".")[0] for name in sys.modules)
del sys.path[0]
_package = ""
for _part in ("attune", "worker", "warm", "inside"):
    _package += ("." if _package else "") + _part
    sys.modules[_package] = type(sys)(_package)
    sys.modules[_package].__path__ = []
sys.modules[_package].__path__ = [sys.argv[1]]
from attune.worker.warm.inside.server import main
main(int(sys.argv[2]), sys.argv[3:], _at_start)
"""
