"""Every error that jetsel raises or sends, with its code on the wire. Imports nothing of ours."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterable


class JetselError(Exception):
    """An error of jetsel. The message gives the problem and the repair.

    `code` is stable and documented in docs/protocol.md; `retry` says whether the same request may succeed later.
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
    """The message's `type` is unknown to the daemon."""

    code = "unknown-kind"


class BadImageError(JetselError):
    """The bytes are not a whole image in a supported format."""

    code = "bad-image"


class ImageTooLargeError(JetselError):
    """The image exceeds the configured limit in bytes or in pixels."""

    code = "image-too-large"


class UnknownModelError(JetselError):
    """The family has no model of this name."""

    code = "unknown-model"


class UnknownFamilyError(JetselError):
    """No family of this name is served."""

    code = "unknown-family"


class UnknownPolicyError(JetselError):
    """The family has no policy of this name, or the policy mixes families."""

    code = "unknown-policy"


class LoadingError(JetselError):
    """The daemon runs but its models are still loading."""

    code = "loading"
    retry = True


class BusyError(JetselError):
    """The queue is full in requests, in bytes or in pixels."""

    code = "busy"
    retry = True


class NoMemoryError(BusyError):
    """Memory ran out during a request; only this request failed, and it may succeed later."""


class OverLimitError(JetselError):
    """One user has too many requests in progress; other users are served."""

    code = "over-limit"
    retry = True


class DeadlineError(JetselError):
    """No path can answer by the request's deadline, or the deadline passed before any model ran."""

    code = "deadline"


class InDoubtError(JetselError):
    """The answer is in doubt and the request asks for rejection in that case.

    covered: expected share of images not in doubt, if the request has a promise.
    """

    code = "in-doubt"
    covered: float | None = None


class RequirementsError(JetselError):
    """No path, here or on the edge server, has the required accuracy, energy and latency."""

    code = "unmet-requirements"


class ModelUnavailableError(JetselError):
    """The required model failed to load or to run."""

    code = "model-unavailable"


class EngineDiedError(ModelUnavailableError):
    """The process that ran the model died or hung, and is being restarted."""

    code = "engine-died"
    retry = True


class NotAllowedError(JetselError):
    """The peer may not send this message."""

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


def _subclasses_by_code(base: type[JetselError]) -> dict[str, type[JetselError]]:
    by_code = {base.code: base} if "code" in vars(base) else {}
    for child in base.__subclasses__():
        by_code |= _subclasses_by_code(child)
    return by_code


BY_CODE = _subclasses_by_code(JetselError)
"""Wire code -> error class, so that a client raises the error that the daemon sent."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return " (did you mean X?)" if a candidate is similar, otherwise an empty string."""
    near = difflib.get_close_matches(name, list(candidates), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def pip_install(extra: str) -> str:
    """Return the command that installs an extra of jetsel for the running Python."""
    return f"{shlex.quote(sys.executable)} -m pip install 'jetsel[{extra}]'"
