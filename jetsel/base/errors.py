"""Every error that jetsel raises or sends, with its code on the wire. Imports nothing of ours."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterable


class JetselError(Exception):
    """Base of all errors of jetsel. The message gives the problem and the repair.

    `code` identifies the class in replies of the daemon and never changes (docs/protocol.md lists the codes). `retry`
    is True if the same request may succeed later.
    """

    code: str = "internal"
    retry: bool = False


class InternalError(JetselError):
    """A defect in jetsel; the daemon's log has the traceback with the request's id."""


class ConfigError(JetselError):
    """The configuration cannot be used. The message has the key, the problem, and an example."""

    code = "config"


class BadRequestError(JetselError):
    """The message does not follow the protocol: frames, JSON, fields or their values."""

    code = "bad-request"


class UnsupportedVersionError(JetselError):
    """The message speaks another version of the protocol."""

    code = "unsupported-version"


class UnknownKindError(JetselError):
    """The daemon does not know the message's `type`."""

    code = "unknown-kind"


class BadImageError(JetselError):
    """The bytes are not a complete image in a supported format."""

    code = "bad-image"


class ImageTooLargeError(JetselError):
    """The image exceeds the configured limit in bytes or in pixels."""

    code = "image-too-large"


class UnknownModelError(JetselError):
    """The request's family (models with the same classes) has no model of this name."""

    code = "unknown-model"


class UnknownFamilyError(JetselError):
    """The daemon serves no family (classes, and the models that answer with them) of this name."""

    code = "unknown-family"


class UnknownPolicyError(JetselError):
    """The family has no policy (rule that chooses the models to run) of this name, or the policy mixes families."""

    code = "unknown-policy"


class LoadingError(JetselError):
    """The daemon runs but its models are still loading."""

    code = "loading"
    retry = True


class BusyError(JetselError):
    """The daemon's queue has reached its limit of requests, bytes or pixels."""

    code = "busy"
    retry = True


class NoMemoryError(BusyError):
    """Memory ran out during a request; only this request failed, and it may succeed later."""


class OverLimitError(JetselError):
    """The user who sent the request has too many requests in progress; the daemon still serves other users."""

    code = "over-limit"
    retry = True


class DeadlineError(JetselError):
    """Neither this device nor the edge server can answer by the deadline, or it passed before any model ran."""

    code = "deadline"


class InDoubtError(JetselError):
    """No model is expected to be right for the image, and the request asks for an error in that case.

    covered: share (0 to 1) of images that the calibration expects to be answered, None without a `wrong_at_most`.
    """

    code = "in-doubt"
    covered: float | None = None


class RequirementsError(JetselError):
    """No model or policy, here or on the edge server, has the accuracy, energy and latency that the request demands."""

    code = "unmet-requirements"


class ModelUnavailableError(JetselError):
    """The required model failed to load or to run."""

    code = "model-unavailable"


class EngineDiedError(ModelUnavailableError):
    """The process that ran the model died or hung, and is being restarted."""

    code = "engine-died"
    retry = True


class NotAllowedError(JetselError):
    """The user at the other end of the connection may not send this message."""

    code = "not-allowed"


class ReloadFailedError(JetselError):
    """The new configuration or models cannot be used; the previous ones stay in use."""

    code = "reload-failed"


class ShuttingDownError(JetselError):
    """The daemon is stopping; it still answers requests that it accepted before."""

    code = "shutting-down"
    retry = True


class NoDaemonError(JetselError):
    """No daemon listens on the endpoint (raised by clients, never sent)."""

    code = "no-daemon"
    retry = True


class NoReplyError(JetselError):
    """The daemon did not reply within the client's timeout (raised by clients, never sent)."""

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
    """Power cannot be read, recorded or calibrated on this machine as requested."""

    code = "bad-power"


class CalibrationError(JetselError):
    """A calibration cannot be used: it is damaged, too new, or made for other models or features."""

    code = "bad-calibration"


class RepositoryError(JetselError):
    """A repository of models cannot be read, written or trusted (raised by commands, never sent)."""

    code = "bad-repository"


def _subclasses_by_code(error_class: type[JetselError]) -> dict[str, type[JetselError]]:
    """Return wire code -> class for a class and its subclasses; a class without a `code` of its own is left out."""
    classes = {error_class.code: error_class} if "code" in vars(error_class) else {}
    for subclass in error_class.__subclasses__():
        classes |= _subclasses_by_code(subclass)
    return classes


BY_CODE = _subclasses_by_code(JetselError)
"""Wire code -> error class, so that a client raises the error that the daemon sent."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return " (did you mean X?)" for an error message if a candidate is similar to the name, otherwise ""."""
    matches = difflib.get_close_matches(name, list(candidates), 1)
    return f" (did you mean {matches[0]}?)" if matches else ""


def pip_install(extra: str) -> str:
    """Return the command that installs an extra of jetsel for the running Python."""
    return f"{shlex.quote(sys.executable)} -m pip install 'jetsel[{extra}]'"
