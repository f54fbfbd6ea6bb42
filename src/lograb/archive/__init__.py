"""One instance, one file: written whole, verified as it is read, opened lazily.

The format is described in ``docs/reference/file-format.md``.
"""

from lograb.archive.reader import read, verify
from lograb.archive.writer import Writer

__all__ = ["Writer", "read", "verify"]
