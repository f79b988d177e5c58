"""The faults of the proxy, seen by a plain client of a plain echo server."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from harness.proxy import FaultProxy
from harness.waiting import wait_until


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        try:
            while data := self.request.recv(4096):
                self.request.sendall(data)
        except ConnectionError:
            return


class EchoServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    with EchoServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with FaultProxy("127.0.0.1", server.server_address[1]) as proxy:
            yield proxy
        server.shutdown()
        thread.join()


def connect(proxy: FaultProxy, timeout: float = 10.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=timeout)


def echo(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return client.recv(4096)


def test_a_healthy_proxy_forwards_and_counts(proxy: FaultProxy) -> None:
    with connect(proxy) as client:
        assert echo(client, b"hello") == b"hello"
        assert proxy.connections == 1
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
    wait_until(lambda: proxy.connections == 0, what="the connection is gone")


def test_a_cut_resets_connections_and_refuses_new_ones_until_healed(proxy: FaultProxy) -> None:
    with connect(proxy) as client:
        assert echo(client, b"hello") == b"hello"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    assert proxy.connections == 0

    proxy.heal()
    with connect(proxy) as client:
        assert echo(client, b"again") == b"again"


def test_a_stall_is_silent_and_what_it_held_back_arrives_late(proxy: FaultProxy) -> None:
    with connect(proxy) as old:
        assert echo(old, b"hello") == b"hello"
        proxy.stall()
        with connect(proxy) as new:
            for client in (old, new):
                client.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    echo(client, b"held")
            proxy.heal()
            for client in (old, new):
                client.settimeout(10)
                assert client.recv(4096) == b"held"


def test_a_stalled_proxy_can_be_cut(proxy: FaultProxy) -> None:
    with connect(proxy) as client:
        assert echo(client, b"hello") == b"hello"
        proxy.stall()
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_a_slow_proxy_holds_everything_back(proxy: FaultProxy) -> None:
    proxy.slow(0.1)
    with connect(proxy) as client:
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            echo(client, b"hello")
        client.settimeout(10)
        assert client.recv(4096) == b"hello"


def test_a_server_that_is_down_looks_down_through_the_proxy() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with FaultProxy(*unused.getsockname()) as proxy, connect(proxy) as client:
            assert client.recv(1) == b""


def test_closing_twice_is_safe(proxy: FaultProxy) -> None:
    proxy.close()
    proxy.close()


def test_an_address_keeps_everything_but_host_and_port(proxy: FaultProxy) -> None:
    assert (
        proxy.url_for("amqp://guest:guest@127.0.0.1:5672/a%2Fb?x=1")
        == f"amqp://guest:guest@127.0.0.1:{proxy.port}/a%2Fb?x=1"
    )
    assert proxy.url_for("redis://10.0.0.1:1/0") == f"redis://127.0.0.1:{proxy.port}/0"
