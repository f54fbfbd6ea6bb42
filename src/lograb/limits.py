"""How much a file from a stranger may take, and the one variable that raises every limit.

``LOGRAB_MAX_BYTES``, in bytes, is by default 256 MiB. It bounds

- what a user's graph file or answer may have, and unpack to (``.gz``, ``.npz``). Text takes 30 to 60 times
  its size in memory while it is read: 256 MiB are some 15 million edges, and 8 to 15 GB;
- the members of a ``.gz`` file: one for every 4 KiB that it may unpack to, for an empty one takes time too;
- what a pickle may build by repeating pieces of its content: this much, or four times the file.

A file of a public dataset has a limit of its own, 1 GiB unless the dataset says otherwise (`RawFile.limit`):
for the download, for what comes out of an archive, and for what that unpacks to in turn. The variable raises
this limit too, but never lowers it.

Limits that no variable raises, because no graph comes near them: a file may claim 100 nodes, or features,
for every entry that it has, and a million in any case; keys of a dictionary in a pickle are numbers and
strings.
"""

from __future__ import annotations

import os

from lograb.errors import LograbError

VARIABLE = "LOGRAB_MAX_BYTES"
DEFAULT = 1 << 28
REMEDY = f"if you trust it, set {VARIABLE} to more"
"""How an error about a limit ends."""


def max_bytes(at_least: int = 0) -> int:
    """Return how many bytes a file may unpack to: the variable's value or the default, or `at_least`."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return at_least or DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise LograbError(f"{VARIABLE} must be a whole number of bytes above 0, got '{text[:60]}'; "
                          "correct or unset it")
    return max(at_least, int(text))
