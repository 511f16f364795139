"""What each backend offers to the requests: a runtime, and the models that it loads."""

from typing import Any, Dict, Optional, Tuple

from .memory import available_bytes, resident_bytes


class Model:
    """One loaded model. max_batch: images at a time, None without a limit; scratch_bytes: what a run works in."""

    max_batch: Optional[int] = None
    scratch_bytes: Optional[int] = None

    def run(self, batch: Any) -> Tuple[Any, Any, Optional[float]]:
        """Return logits (n, classes) float32, the embedding (n, width) or None, and the device's own ms or None.

        batch: (n, 3, height, width) float32, a view of the shared memory. The next run may overwrite the arrays.
        Raises Refusal("infer-failed", ...) or Poisoned.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free what it holds."""


class Runtime:
    """One backend and everything that its models share."""

    def describe(self) -> Dict[str, Any]:
        """Return "version", "libraries" and "gpu" as the reply to hello has them."""
        raise NotImplementedError

    def available_bytes(self) -> Optional[int]:
        """Return the memory that another model could still take."""
        return available_bytes()

    def held_bytes(self) -> Optional[int]:
        """Return a number that grows by what loading a model takes."""
        return resident_bytes()

    def open(self, request: Dict[str, Any], content: bytes) -> Model:
        """Load one model from its file's content; raises Refusal, or Poisoned."""
        raise NotImplementedError

    def build(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Build an engine, if this runtime runs nothing else; raises Refusal, or Poisoned."""
        raise NotImplementedError

    def close(self) -> None:
        """Free the device."""
