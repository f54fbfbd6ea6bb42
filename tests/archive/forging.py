"""Archives that say what nobody measured, under correct checksums: what a hostile author could write."""

import hashlib
import io
import json
import zipfile
import zlib

import numpy as np

from lograb.archive import container


def read_arrays(saved):
    """Read all columns of an archive."""
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        return {name.removesuffix(".npy"): np.load(io.BytesIO(file.read(name))) for name in file.namelist()
                if name.endswith(".npy")}  # fmt: skip


def repack(saved, change):
    """Change the members of an archive and sign it anew."""
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    out, entries = b"", []
    for name, data in members.items():
        entries.append(container.Entry(name, zlib.crc32(data), len(data), len(out)))
        out += entries[-1].local_header() + data
    return out + container.directory(entries, hashlib.sha256(members["manifest.json"]).hexdigest())


def edit_manifest(change):
    def edit(members):
        content = json.loads(members["manifest.json"])
        change(content)
        members["manifest.json"] = json.dumps(content).encode()

    return edit


def replace_array(name, array):
    """Swap one array for another, with correct checksums."""

    def edit(members):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, version=(1, 0))
        data = members[f"{name}.npy"] = buffer.getvalue()
        content = json.loads(members["manifest.json"])
        digest = hashlib.sha256(data).hexdigest()
        content["members"][name] = {"dtype": array.dtype.str, "shape": list(array.shape), "bytes": len(data),
                                    "sha256": digest, "blocks": [digest]}  # fmt: skip
        members["manifest.json"] = json.dumps(content).encode()

    return edit
