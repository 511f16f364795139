"""Every error that jetsel raises or answers, with its code on the wire; imports nothing of ours."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterable


class JetselError(Exception):
    """Something jetsel cannot do. The message names what is wrong and the repair.

    `code` is stable and documented in docs/protocol.md; `retry` says whether the same request may succeed later.
    """

    code: str = "internal"
    retry: bool = False


class InternalError(JetselError):
    """A fault of jetsel itself; the daemon's log has the traceback under the request's id."""


class ConfigError(JetselError):
    """The configuration cannot be used: which key, what is wrong with it, and an example."""

    code = "config"


class BadRequestError(JetselError):
    """The message is not one of the protocol: frames, JSON, fields or their values."""

    code = "bad-request"


class UnsupportedVersionError(JetselError):
    """The message speaks another version of the protocol."""

    code = "unsupported-version"


class UnknownKindError(JetselError):
    """The message's `type` names no kind of message that the daemon answers."""

    code = "unknown-kind"


class BadImageError(JetselError):
    """The bytes are not a whole image of a kind that jetsel reads."""

    code = "bad-image"


class ImageTooLargeError(JetselError):
    """The image is past the configured limit in bytes or in pixels."""

    code = "image-too-large"


class UnknownModelError(JetselError):
    """No model of this name in the family."""

    code = "unknown-model"


class UnknownFamilyError(JetselError):
    """No family of this name is served."""

    code = "unknown-family"


class UnknownPolicyError(JetselError):
    """No policy of this name in the family, or one that mixes families."""

    code = "unknown-policy"


class LoadingError(JetselError):
    """The daemon is up but its models are not ready yet."""

    code = "loading"
    retry = True


class BusyError(JetselError):
    """The queue is full in requests, in bytes or in pixels."""

    code = "busy"
    retry = True


class NoMemoryError(BusyError):
    """Memory ran out in the middle of a request; this one alone failed, and may succeed when others have left."""


class OverLimitError(JetselError):
    """One client has as many requests under way as it may; others are served."""

    code = "over-limit"
    retry = True


class DeadlineError(JetselError):
    """No path can answer within the request's deadline, or it passed before any model had run."""

    code = "deadline"


class InDoubtError(JetselError):
    """The answer is in doubt and the request asked to refuse rather than to guess.

    covered: the share of images that are expected not to be, if the request has a promise.
    """

    code = "in-doubt"
    covered: float | None = None


class RequirementsError(JetselError):
    """No path, here or at the edge, has the accuracy, energy and time that the request asked for."""

    code = "unmet-requirements"


class ModelUnavailableError(JetselError):
    """The model that the request needs failed to load or failed while running."""

    code = "model-unavailable"


class EngineDiedError(ModelUnavailableError):
    """The process that ran the model died or hung, and is being started again."""

    code = "engine-died"
    retry = True


class NotAllowedError(JetselError):
    """The peer may not send this message."""

    code = "not-allowed"


class ReloadFailedError(JetselError):
    """The new configuration or models cannot be used; the running ones stay."""

    code = "reload-failed"


class ShuttingDownError(JetselError):
    """The daemon is stopping; what was accepted before is still answered."""

    code = "shutting-down"
    retry = True


class NoDaemonError(JetselError):
    """No daemon answers on the endpoint (raised by clients, never sent)."""

    code = "no-daemon"
    retry = True


class NoReplyError(JetselError):
    """The daemon did not answer within the client's timeout (raised by clients, never sent)."""

    code = "no-reply"
    retry = True


class ManifestError(JetselError):
    """A model's manifest, labels or weights cannot be used."""

    code = "bad-model"


class DownloadError(ManifestError):
    """A model's weights cannot be downloaded now (raised by commands, never sent)."""

    code = "download-failed"
    retry = True


class PowerError(JetselError):
    """Power cannot be read, recorded or calibrated on this machine as it was asked for."""

    code = "bad-power"


class CalibrationError(JetselError):
    """A calibration cannot be used: damaged, too new, or made for other models or features."""

    code = "bad-calibration"


class RepositoryError(JetselError):
    """A repository of models cannot be read, written or trusted (raised by commands, never sent)."""

    code = "bad-repository"


def _all(base: type[JetselError]) -> dict[str, type[JetselError]]:
    by_code = {base.code: base} if "code" in vars(base) else {}
    for child in base.__subclasses__():
        by_code |= _all(child)
    return by_code


BY_CODE = _all(JetselError)
"""The error class of each wire code, so that a client raises what the daemon meant."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return " (did you mean X?)" if one of the known names is near, else nothing."""
    near = difflib.get_close_matches(name, list(candidates), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def pip_install(extra: str) -> str:
    """Return the command that installs one of jetsel's extras beside this jetsel, whatever `pip` the shell finds."""
    return f"{shlex.quote(sys.executable)} -m pip install 'jetsel[{extra}]'"
