"""Croissant metadata: the archive described for machines (MLCommons Croissant 1.0, JSON-LD).

File addresses are relative to the place the archive is unpacked to. There is no date: equal
instances have equal bytes.
"""

from __future__ import annotations

import json
from typing import Any

from lograb.archive.manifest import Manifest
from lograb.archive.schema import RULES

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(manifest: Manifest) -> bytes:
    """Describe an archive's arrays; `manifest` must already list them."""
    spec = manifest.spec
    files = [
        {
            "@type": "cr:FileObject",
            "@id": f"{name}.npy",
            "name": f"{name}.npy",
            "description": f"{RULES[name].meaning} ({member.dtype}, shape {list(member.shape)})",
            "contentUrl": f"{name}.npy",
            "contentSize": f"{member.bytes} B",
            "encodingFormat": "application/x-npy",
            "sha256": member.sha256,
        }
        for name, member in manifest.members.items()
    ]
    document: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"lograb-{manifest.name}".replace("/", "-"),
        "description": (
            f"Noisy truncated spectra of overlapping patches of the graph '{manifest.name}': "
            f"strategy {spec.strategy}, d={spec.d}, p={spec.p}, k={spec.k}, sigma={spec.sigma}, "
            f"gauge {spec.gauge}. The file manifest.json holds every parameter."
        ),
        "license": manifest.origin.licence or "not stated",
        "citeAs": "Spectral Embeddings Leak Graph Topology: Theory, Benchmark, and Adaptive Reconstruction",
        "distribution": files,
    }
    if manifest.origin.url:
        document["isBasedOn"] = manifest.origin.url
    return json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8") + b"\n"
