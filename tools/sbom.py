"""Bill of materials of a native library's linked components (CycloneDX 1.6, placed in its wheel as PEP 770 says)."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

LLVM = "Apache-2.0 WITH LLVM-exception"


def bill(name: str, of_version: str, system: str) -> str:
    """Return the bill of a package's wheel for a system by CMake's name; the same text for the same versions."""
    zig = version("ziglang")
    parts = [
        _component("libc++", f"of Zig {zig}", LLVM),
        _component("libc++abi", f"of Zig {zig}", LLVM),
        _component("libunwind", f"of Zig {zig}", LLVM),
        _component("Zig compiler-rt", zig, "MIT"),
    ]
    if system == "Windows":
        parts.append(_component("mingw-w64 runtime", f"of Zig {zig}", "ZPL-2.1"))
    package = {"type": "library", "name": name, "version": of_version, "purl": f"pkg:pypi/{name}@{of_version}"}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": package},
        "components": parts,
    }
    return json.dumps(document, indent=2) + "\n"


def _component(name: str, of_version: str, licence: str) -> dict[str, Any]:
    return {"type": "library", "name": name, "version": of_version, "licenses": [{"expression": licence}]}
