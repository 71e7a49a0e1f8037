"""What is missing from an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from ._errors import Incomplete

_STATES = ("complete", "unknown", "incomplete")
# Lines that take nothing from an answer (docs/extract.md, "Complete, incomplete, unknown").
_ABOUT_WHOLE = (
    "recorded:",
    "indexed on the way:",
    "out of order:",
    "erased:",
    "not read any more:",
)


@dataclass(frozen=True)
class Statement:
    """What the service says of the completeness of an answer."""

    state: str
    """`complete`, `incomplete`, or `unknown`: nothing is known to be missing, but it may be."""
    text: str
    """In words, as `wirespool find` prints it."""
    reasons: tuple[str, ...] = ()
    """The lines that say why the answer is not complete."""
    cut_by: Optional[str] = None
    """What ended the answer early: `time`, `bytes` or `limit`."""
    notes: tuple[str, ...] = ()
    completeness: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Counts, gaps and times, as in the manifest of an extract."""

    @property
    def is_complete(self) -> bool:
        return self.state == "complete"

    def require_complete(self) -> None:
        """Raises `Incomplete` unless the answer is complete."""
        if not self.is_complete:
            raise Incomplete(self)

    def as_dict(self) -> dict[str, Any]:
        """As simple values, for the metadata of a table."""
        return {"state": self.state, "text": self.text, "reasons": list(self.reasons)}


def unknown(reason: str) -> Statement:
    return Statement("unknown", f"unknown: {reason}", (reason,))


def parse(said: Any) -> Statement:
    """The statement of an answer. What cannot be read is `unknown`, never `complete`."""
    if not isinstance(said, dict) or not isinstance(said.get("text"), str):
        return unknown("the service made no statement")
    text, cut_by, completeness = said["text"], said.get("cut_by"), said.get("completeness")
    state = said.get("state") if said.get("state") in _STATES else "unknown"
    if cut_by is not None and state != "incomplete":
        state = "incomplete"
    lines = text.splitlines()[1:] if state != "complete" else []
    reasons = [line for line in lines if not line.startswith(_ABOUT_WHOLE)]
    if cut_by is not None and not any(line.startswith("cut:") for line in reasons):
        reasons.append(f"cut: by {cut_by}")
    notes = said.get("notes")
    return Statement(
        state=str(state),
        text=text,
        reasons=tuple(reasons),
        cut_by=None if cut_by is None else str(cut_by),
        notes=tuple(map(str, notes)) if isinstance(notes, list) else (),
        completeness=completeness if isinstance(completeness, dict) else {},
    )


def without_cut(part: Statement) -> Statement:
    """Of a page behind which another one was read: its own end takes nothing from the whole."""
    reasons = tuple(line for line in part.reasons if not line.startswith("cut:"))
    return Statement("incomplete" if reasons else "complete", part.text, reasons, notes=part.notes)


def merge(parts: Iterable[Statement], count: int) -> Statement:
    """Of an answer that came in parts: the worst state, and all reasons once."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    state = max((part.state for part in parts), key=_STATES.index)
    reasons = tuple(dict.fromkeys(line for part in parts for line in part.reasons))
    about = [line for line in parts[-1].text.splitlines() if line.startswith(_ABOUT_WHOLE)]
    text = "\n".join([f"{count} sessions, {state}", *reasons, *about])
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return Statement(state, text, reasons, parts[-1].cut_by, notes, parts[-1].completeness)
