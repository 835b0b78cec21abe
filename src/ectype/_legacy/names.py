"""Names in files of version 0.1 that had the package's name in them."""

from __future__ import annotations

from ectype.types import Json

SPACE, SPACE_TODAY = "understudy.space", "ectype.space"
ONNX_GAP = "understudy.gap"


def with_space_format_of_today(space: object) -> object:
    """The JSON of a space, whose format may have its name of version 0.1."""
    return {**space, "format": SPACE_TODAY} if isinstance(space, dict) and space.get("format") == SPACE else space


def for_digest(space: str) -> str:
    """The text that the digest of a space is taken of: with the name of version 0.1, so that no digest changes."""
    return space.replace(f'"{SPACE_TODAY}"', f'"{SPACE}"', 1)


def with_versions_of_today(run: Json) -> Json:
    """What run.json says, where the package is named among the versions by its name of today."""
    versions = run.get("versions")
    if not isinstance(versions, dict) or "understudy" not in versions:
        return run
    return {**run, "versions": {"ectype" if name == "understudy" else name: v for name, v in versions.items()}}
