"""The folder beside a report that keeps every finished point, so that an audit goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lograb.errors import LograbError
from lograb.writing import replacing


class Points:
    """Finished points by key, in a folder (made when the first one is kept), or in memory without one."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.kept = 0
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise LograbError(f"finished points are kept in a folder, '{folder}' is a file")

    def get(self, key: str) -> dict[str, Any] | None:
        """Read a point; None where there is none, or none that can be read: it is made again."""
        if self.folder is None:
            return None
        try:
            content = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def put(self, key: str, point: dict[str, Any]) -> None:
        """Keep a point, whole or not at all."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise LograbError(f"cannot make the folder '{self.folder}': {error.strerror}") from None
        with replacing(self.folder / f"{key}.json") as file:
            file.write(json.dumps(point, ensure_ascii=False, allow_nan=False))
        self.kept += 1
