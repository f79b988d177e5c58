"""How a call can end other than well. A refusal by the server is an `AttuneApiError` of the status's own class."""

from collections.abc import Mapping
from typing import Any, ClassVar

from attune.kernel.errors import AttuneError, Unavailable


class AttuneApiError(AttuneError):
    """The server refused. `code` is the server's stable word for it, `details` name what it is about."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(
            message, status=status, code=code, details=details, retry_after=retry_after
        )
        self.status = status
        self.details = dict(details or {})
        self.retry_after = retry_after
        if code is not None:
            self.code = code  # type: ignore[misc]  # the server's word goes before the class's own

    @property
    def sentence(self) -> str:
        return self.message


class BadRequest(AttuneApiError):
    code: ClassVar[str] = "bad_request"


class NotAuthenticated(AttuneApiError):
    """No token, or one that is not valid any more."""

    code = "unauthenticated"


class NotAllowed(AttuneApiError):
    code = "forbidden"


class NotFound(AttuneApiError):
    code = "not_found"


class Conflict(AttuneApiError):
    """There is one already, or its present state rules the request out."""

    code = "conflict"


class Invalid(AttuneApiError):
    """The input breaks a rule; `details` name each field with it."""

    code = "invalid_input"


class Limited(AttuneApiError):
    """A limit was reached; `retry_after` is in seconds where the server knows."""

    code = "limited"


class NotConfigured(AttuneApiError):
    code = "not_configured"


class ServerFault(AttuneApiError):
    """Nothing is wrong with the request; the server's log has the reason."""

    code = "internal"
    retriable = True


class ServerAway(Unavailable):
    """No answer came: nobody listens there, or the connection broke."""

    code = "server_away"


class BadAnswer(AttuneError):
    """What answered does not speak Attune's API."""

    code = "bad_answer"


class NotFinished(AttuneError):
    """What was waited for did not end within that time; it goes on."""

    code = "not_finished"


_BY_STATUS: Mapping[int, type[AttuneApiError]] = {
    400: BadRequest,
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    422: Invalid,
    429: Limited,
    501: NotConfigured,
}


def error_class(status: int) -> type[AttuneApiError]:
    return _BY_STATUS.get(status, ServerFault if status >= 500 else AttuneApiError)
