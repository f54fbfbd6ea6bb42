"""The manifest: what is in an archive, how it was made, and the checksum of every member."""

from __future__ import annotations

import hashlib
import json
import platform
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lograb.errors import ArchiveError
from lograb.spec import InstanceSpec, Origin, first_problem

MANIFEST, CROISSANT = "manifest.json", "croissant.json"
FORMAT_VERSION = 1
MAX_BYTES = 1 << 26
BLOCK = 1 << 20
"""Members are hashed in blocks of this many bytes, so that a part can be verified by itself."""

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Member(BaseModel):
    """One array: its type and shape, its length in the file, and its checksums."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: str
    shape: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**48)], ...], Field(min_length=1, max_length=2)]
    bytes: int = Field(ge=0)
    sha256: Sha256
    blocks: tuple[Sha256, ...]


class Manifest(BaseModel):
    """The content of ``manifest.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["lograb"] = "lograb"
    version: Literal[1] = 1
    name: str
    spec: InstanceSpec
    origin: Origin
    notices: tuple[str, ...] = ()
    truth: bool = True
    n_features: int = Field(0, ge=0, lt=2**31)
    software: dict[str, str] = Field(default_factory=dict)
    croissant_sha256: Sha256 = "0" * 64
    members: dict[str, Member] = Field(default_factory=dict)

    def encode(self) -> bytes:
        """Write the manifest as JSON, always in the same way."""
        text = json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True, ensure_ascii=False)
        return text.encode("utf-8") + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Read and validate a manifest; a newer format is named as such."""
        try:
            content: Any = json.loads(data)
            json.dumps(content, ensure_ascii=False).encode("utf-8")  # half characters are no text
        except (ValueError, RecursionError) as error:
            raise ArchiveError(MANIFEST, f"is not valid JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != "lograb":
            raise ArchiveError(MANIFEST, "does not describe a lograb archive")
        found = content.get("version")
        if isinstance(found, int) and found > FORMAT_VERSION:
            newest = f"this lograb reads versions up to {FORMAT_VERSION}: upgrade it"
            raise ArchiveError(MANIFEST, f"format version {found} is too new, {newest}")
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise ArchiveError(MANIFEST, first_problem(error)) from None


@dataclass(frozen=True)
class Digest:
    """Length and checksums of a member's bytes."""

    size: int
    crc: int
    sha256: str
    blocks: tuple[str, ...]

    @classmethod
    def of(cls, pieces: Iterable[bytes]) -> Digest:
        """Read a member's bytes, cut into blocks."""
        whole, size, crc, blocks = hashlib.sha256(), 0, 0, []
        for piece in pieces:
            whole.update(piece)
            blocks.append(hashlib.sha256(piece).hexdigest())
            crc, size = zlib.crc32(piece, crc), size + len(piece)
        return cls(size, crc, whole.hexdigest(), tuple(blocks))


def software() -> dict[str, str]:
    """Name the versions that can influence an instance's bytes."""
    packages = ("lograb", "numpy", "scipy", "pymetis")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
