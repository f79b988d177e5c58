"""The README's commands, as a newcomer types them, against a real `attune up`."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.e2e.attune_process import clean_environment
from tests.e2e.installation import Installation

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^ *```sh\n(.*?)^ *```", README, re.DOTALL | re.MULTILINE)
# These start or test the installation itself.
OURS = ("make up", "make test", "make check", "make help", "make bench")


def commands() -> str:
    wanted = [block for block in BLOCKS if not block.lstrip().startswith(OURS)]
    return "\n".join(re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in wanted)


CURL = """#!{python}
import sys, urllib.request
url, header, body = sys.argv[2], sys.argv[4].split(": "), sys.argv[6].encode()
print(urllib.request.urlopen(urllib.request.Request(url, body, dict([header]))).read().decode())
"""


def plain_curl(folder: Path) -> Path:
    """For a machine without curl: its `curl -s URL -H HEADER -d BODY`, which is all that the page uses."""
    place = folder / "bin"
    place.mkdir()
    (place / "curl").write_text(CURL.format(python=sys.executable))
    (place / "curl").chmod(0o755)
    return place


def test_every_command_of_the_readme_works_in_the_order_of_the_page(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    path = (
        os.environ["PATH"]
        if shutil.which("curl")
        else f"{plain_curl(tmp_path)}:{os.environ['PATH']}"
    )
    assert commands().count(".venv/bin/attune") > 8
    with Installation(tmp_path / "data") as installation:
        installation.up()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=clean_environment({"ATTUNE__DATA_DIR": str(tmp_path / "data"), "PATH": path}),
        )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("core.echo completed", "demo.on_odd_order", "Webhook received successfully"):
        assert words in done.stdout
