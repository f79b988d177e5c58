"""HTTP by a parser in C, where it is safe: uvicorn's own protocol for it trusts its clients in three ways that we do not.

A head or a trailer may be of any size, and stays in memory. A trailer becomes a header of a request that is being answered. And
the body of a request that offers an upgrade, as curl does for HTTP/2, is lost.
"""

from typing import Final

import httptools
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD: Final = 64 * 1024
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class HttpProtocol(HttpToolsProtocol):
    """One connection. The parser stops at an offer of an upgrade, so the connection goes to a protocol that ignores those."""

    _in_head = True
    _unused = 0  # bytes since anything of a request was complete

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unused += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._give_to_h11(data[offer.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        else:
            if self._unused > LARGEST_HEAD:
                self._refuse()

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._unused = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unused = 0
        super().on_message_complete()

    def _should_upgrade(self) -> bool:
        """Nothing of a request that offers one begins here."""
        return True

    def _give_to_h11(self, rest: bytes) -> None:
        """While another request of the connection is being answered, this one must wait, and comes again on a new one."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            return
        self.connections.discard(self)
        other = H11Protocol(self.config, self.server_state, self.app_state)
        other.connection_made(self.transport)
        self.transport.set_protocol(other)
        other.data_received(self._head() + rest)

    def _head(self) -> bytes:
        method: str = self.scope["method"]
        fields = (name + b": " + value for name, value in self.headers)
        first = method.encode() + b" " + self.url + b" HTTP/1.1"
        return b"\r\n".join([first, *fields, b"", b""])

    def _refuse(self) -> None:
        """An answer that has begun cannot be told anything."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_TOO_LARGE)
        self.transport.close()
