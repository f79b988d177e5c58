"""A private RabbitMQ server, with a private port mapper, and its management interface."""

import base64
import json
import shutil
import socket
import uuid
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, TypedDict
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from harness.binaries import ServerMissing, require
from harness.ports import LOOPBACK, answers, free_port
from harness.rabbitmq_home import make_home
from harness.server import Server
from harness.waiting import wait_until

USER = "guest"
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

CONFIGURATION = """\
listeners.tcp.default = {host}:{port}
management.tcp.ip = {host}
management.tcp.port = {management_port}
collect_statistics_interval = 100
disk_free_limit.absolute = 1MB
vm_memory_high_watermark.absolute = 2GB
log.console = true
log.console.level = warning
log.file = false
"""

# Collects every second, the least it takes, instead of every five: a test waits for what it shows.
ADVANCED_CONFIGURATION = """\
[{rabbitmq_management_agent, [
  {sample_retention_policies, [{global, [{60, 1}]}, {basic, [{60, 1}]}, {detailed, [{10, 1}]}]}
]}].
"""
# A declaration would otherwise stay in memory for two seconds, and a kill within them would forget it.
KEEP_DECLARATIONS = "-mnesia dump_log_write_threshold 1"
ON_LOOPBACK = "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"


class Queue(TypedDict):
    """A queue as the management interface tells it."""

    name: str
    messages: int
    consumers: int
    arguments: dict[str, Any]


class RabbitMQ(Server):
    """Where a method takes a virtual host, its name and its address will both do."""

    name: ClassVar[str] = "rabbitmq"
    system_user: ClassVar[str] = "rabbitmq"

    def __init__(self) -> None:
        super().__init__()
        self.management_port = free_port()
        self._distribution_port = free_port()
        self._mapper_port = free_port()
        self._home = Path()
        self._opener = build_opener(ProxyHandler({}))

    @property
    def url(self) -> str:
        """The default virtual host; tests take one of their own by create_vhost()."""
        return self.url_of("/")

    def url_of(self, vhost: str) -> str:
        """The address of a virtual host on this server."""
        return f"amqp://{USER}:{USER}@{LOOPBACK}:{self.port}/{quote(vhost, safe='')}"

    def create_vhost(self, name: str | None = None) -> str:
        """Make a virtual host and return its address; without a name, one that nobody else uses."""
        name = name or f"attune-{uuid.uuid4().hex}"
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self._call("PUT", f"vhosts/{quote(name, safe='')}", {})
        self._call("PUT", f"permissions/{quote(name, safe='')}/{USER}", everything)
        return self.url_of(name)

    def delete_vhost(self, vhost: str) -> None:
        """Remove a virtual host with its queues, and disconnect whoever still uses it."""
        self._call("DELETE", f"vhosts/{_path(vhost)}")

    def queues(self, vhost: str) -> list[Queue]:
        """The queues of a virtual host: their messages now, their consumers as of a second ago."""
        path = _path(vhost)
        rows = self._call("GET", f"queues/{path}?disable_stats=true&enable_queue_totals=true")
        consumers = Counter(row["queue"]["name"] for row in self._call("GET", f"consumers/{path}"))
        return [
            Queue(
                name=row["name"],
                messages=row.get("messages", 0),
                consumers=consumers[row["name"]],
                arguments=row.get("arguments", {}),
            )
            for row in rows
        ]

    def connections(self, vhost: str) -> list[str]:
        """The names of the clients' connections to a virtual host."""
        rows = self._call("GET", "connections?disable_stats=true")
        return [row["name"] for row in rows if _path(row["vhost"]) == _path(vhost)]

    def close_connections(self, vhost: str) -> int:
        """Close the connections there are now from the server's side; how many there were.

        The management interface closes only what it has collected, up to a second after a client came; so it is
        asked until the connections are gone. Clients that have come back meanwhile are left alone.
        """
        names = set(self.connections(vhost))

        def are_closed() -> bool:
            left = names.intersection(self.connections(vhost))
            for name in left:
                self._call("DELETE", f"connections/{quote(name, safe='')}", missing_ok=True)
            return not left

        wait_until(are_closed, what="the connections are closed")
        return len(names)

    def _prepare(self) -> None:
        configuration = CONFIGURATION.format(
            host=LOOPBACK, port=self.port, management_port=self.management_port
        )
        self._write("rabbitmq.conf", configuration)
        self._write("advanced.config", ADVANCED_CONFIGURATION)
        self._write("enabled_plugins", "[rabbitmq_management].\n")
        self._write("rabbitmq-env.conf", "")
        real_home = require("rabbitmq-server").parent.parent
        self._home = make_home(real_home, self.directory / "home")
        if self._home != real_home:
            self._give_to_server(self._home)
            self._give_to_server(self._home / "plugins")

    def _launch(self) -> None:
        """The port mapper first: a node would start one by itself, which would outlive it."""
        mapper = shutil.which("epmd")
        if mapper is None:
            raise ServerMissing("rabbitmq-server")
        self._spawn([mapper, "-address", LOOPBACK, "-port", str(self._mapper_port)])
        wait_until(lambda: answers(self._mapper_port), what="Erlang's port mapper answers")
        self._spawn([self._home / "sbin" / "rabbitmq-server"], **self._node_environment())

    def _node_environment(self) -> dict[str, str]:
        """Every place and port of the node, so that none is the system's."""
        directory = self.directory
        return {
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            # Makes the script become the node instead of waiting for it as its parent.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_HOME": str(self._home),
            "RABBITMQ_PLUGINS_DIR": str(self._home / "plugins"),
            "RABBITMQ_NODENAME": f"attune-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(directory / "data"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_GENERATED_CONFIG_DIR": str(directory / "generated"),
            "RABBITMQ_PLUGINS_EXPAND_DIR": str(directory / "plugins"),
            "RABBITMQ_PID_FILE": str(directory / "node.pid"),
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"{ON_LOOPBACK} {KEEP_DECLARATIONS}",
        }

    def _is_ready(self) -> bool:
        return self._speaks_amqp() and self._hosts_are_up()

    def _speaks_amqp(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=5) as connection:
                connection.sendall(PROTOCOL_HEADER)
                return connection.recv(1) == b"\x01"
        except OSError:
            return False

    def _hosts_are_up(self) -> bool:
        try:
            return bool(self._call("GET", "health/checks/virtual-hosts")["status"] == "ok")
        except (HTTPError, URLError, OSError):
            return False

    def _call(
        self, method: str, path: str, body: object = None, *, missing_ok: bool = False
    ) -> Any:
        credentials = base64.b64encode(f"{USER}:{USER}".encode()).decode()
        request = Request(
            f"http://{LOOPBACK}:{self.management_port}/api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Basic {credentials}", "Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=30) as response:
                content = response.read()
        except HTTPError as error:
            if missing_ok and error.code == 404:
                return None
            raise
        return json.loads(content) if content else None


def _path(vhost: str) -> str:
    """The name or the address of a virtual host, as a part of a path."""
    name = unquote(urlsplit(vhost).path[1:]) if vhost.startswith("amqp://") else vhost
    return quote(name or "/", safe="")
