"""What keeps an action from being started."""

from attune.kernel.errors import AttuneError


class CannotRun(AttuneError):
    """The action cannot be started as it is; the message ends up in the result and holds no value of a parameter."""

    code = "cannot_run"
