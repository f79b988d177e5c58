"""What the driver raises, in words for people; no password ever stands in them."""

import asyncio
from typing import Final

from aiormq.exceptions import (
    AMQPConnectionError,
    AMQPError,
    AuthenticationError,
    ChannelAccessRefused,
    ConnectionClosed,
    ConnectionNotAllowed,
    InvalidFrameError,
    ProbableAuthenticationError,
)
from yarl import URL

from attune.kernel.errors import AttuneError, BusUnavailable, InvalidSettings
from attune.kernel.urls import masked

# What a request may end with when the connection breaks under it. The driver raises a bare RuntimeError on a
# closed connection, and throws its own end, sometimes a CancelledError, into whoever waits.
DRIVER_ERRORS: Final = (AMQPError, OSError, RuntimeError, asyncio.CancelledError)


def check_cancelled(error: BaseException) -> None:
    """Raise a cancellation that is meant for us on; one that the driver made up is only a lost connection."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def parse_url(text: str, heartbeat: int) -> URL:
    """The broker's address, with our heartbeat unless it names one. A bad one is never repeated in full."""
    try:
        url = URL(text)
        known = url.scheme in ("amqp", "amqps") and bool(url.host)
    except ValueError:
        known = False
    if not known:
        raise InvalidSettings(
            "message_queue.url is not an AMQP address such as amqp://user:password@host:5672/vhost.",
            field="message_queue.url",
        )
    return url if "heartbeat" in url.query else url.update_query(heartbeat=str(heartbeat))


def shown(url: URL) -> str:
    """The address without options and password."""
    return masked(str(url.with_query(None)))


def explain(error: BaseException, url: URL) -> AttuneError:
    """The same trouble as an error of ours. Everything but a mismatch may heal, so it is retriable."""
    if isinstance(error, AttuneError):
        return error
    where = f"The message broker at {shown(url)}"
    words = _words(error, url.password)
    match error:
        case ProbableAuthenticationError() | AuthenticationError():
            text = f"{where} refused the login of user {url.user!r}: check message_queue.url."
        case InvalidFrameError() if "Connection.OpenOk" in words:
            # The driver forgets the broker's words here, but only one thing is asked for at this point.
            vhost = url.path.removeprefix("/") or "/"
            text = f"{where} has no virtual host {vhost!r} that user {url.user!r} may use."
        case ConnectionNotAllowed() | ChannelAccessRefused():
            text = f"{where} does not allow user {url.user!r} what Attune needs: {words}"
        case asyncio.CancelledError():
            # What the driver makes of missing heartbeats.
            text = f"{where} fell silent, so the connection was given up."
        case TimeoutError():
            text = f"{where} did not answer in time."
        case AMQPConnectionError() if not isinstance(error, ConnectionClosed):
            text = f"{where} cannot be reached: {words}"
        case _:
            text = f"{where} ended the connection: {words}"
    return BusUnavailable(text)


def _words(error: BaseException, secret: str | None) -> str:
    text = ", ".join(str(part) for part in error.args) or type(error).__name__
    return text.replace(secret, "***") if secret else text
