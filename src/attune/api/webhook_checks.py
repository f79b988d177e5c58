"""Whether a call of a webhook is let in. Pure, but for the rate, which must remember."""

import hashlib
import hmac
import ipaddress
import re
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Final

from attune.api.errors import WrongRequest
from attune.catalog.steps.webhooks import Hmac, IpWhitelist, RateLimit
from attune.kernel.errors import Forbidden, Limited, Unauthenticated

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_SIGNATURES: Final = ("x-webhook-signature", "x-hub-signature-256")
_WITH_PORT: Final = re.compile(r"\[([^\]]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
_KILOBYTE: Final = 1024
_REMEMBERED: Final = 10_000


def caller_address(headers: Mapping[str, str], peer: str | None) -> str:
    """As the contract has it: X-Forwarded-For, whose first address is the client's, else X-Real-IP, else the peer."""
    forwarded = headers.get("x-forwarded-for", "").partition(",")[0].strip()
    return forwarded or headers.get("x-real-ip", "").strip() or peer or ""


def check_size(body: bytes, limit_kb: int | None) -> None:
    if limit_kb is not None and len(body) > limit_kb * _KILOBYTE:
        raise WrongRequest(f"The body is larger than {limit_kb} KB.", limit_kb=limit_kb)


def check_address(address: str, allowed: IpWhitelist | None) -> None:
    if allowed is None or not allowed.enabled:
        return
    known = _parsed(address)
    if known is None or not any(_holds(network, known) for network in allowed.ips):
        raise Forbidden("Calls from this address have no permission to use this webhook.")


def check_signature(headers: Mapping[str, str], body: bytes, config: Hmac | None) -> None:
    """One sentence for every fault: which one it was helps only a forger."""
    if config is None or not config.enabled:
        return
    given = next((headers[name] for name in _SIGNATURES if headers.get(name)), "").strip()
    algorithm, separator, digest = given.rpartition("=")
    digester = getattr(hashlib, config.algorithm)
    expected = hmac.new((config.secret or "").encode(), body, digester).hexdigest()
    right_kind = not separator or algorithm.lower() == config.algorithm
    # Both are compared as bytes: a text that is not ASCII must be wrong, not an error.
    matches = hmac.compare_digest(digest.lower().encode(errors="replace"), expected.encode())
    if not (config.secret and right_kind and matches):
        raise Unauthenticated("The signature of this call is missing or wrong.")


class CallRates:
    """How often each address has called each webhook, in a window that slides.

    It is kept in this process: behind several API processes each counts what it gets. Calls that were refused do not
    count. The longest unused is forgotten first, so memory is bounded whatever addresses callers make up.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._calls: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._calls)

    def check(self, key: str, address: str, limit: RateLimit | None, now: float) -> None:
        """`now` is in seconds that never jump back."""
        if limit is None or not limit.enabled:
            return
        calls = self._calls.setdefault((key, address), deque())
        self._calls.move_to_end((key, address))
        while len(self._calls) > self._remembered:
            self._calls.popitem(last=False)
        while calls and calls[0] <= now - limit.window_seconds:
            calls.popleft()
        if len(calls) >= limit.requests:
            raise Limited(
                f"This webhook takes {limit.requests} calls in {limit.window_seconds} s.",
                retry_after=calls[0] + limit.window_seconds - now,
            )
        calls.append(now)


def _parsed(address: str) -> Address | None:
    """A port behind the address is left aside; an IPv4 address in IPv6's clothes is an IPv4 address."""
    with_port = _WITH_PORT.fullmatch(address)
    text = (with_port[1] or with_port[2]) if with_port else address
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _holds(network: str, address: Address) -> bool:
    return address in ipaddress.ip_network(network, strict=False)
