#!/usr/bin/env python3
"""Checks the direction of includes and the size of files.

Each folder of lib/ includes itself and what is below it; only lib/driver includes CUDA's headers; public headers include
public headers; quoted includes are written from lib/ or include/, never relative; no file has more than 800 lines.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 800

# The layers that each layer may include, besides itself and the public headers.
BELOW = {"driver": set(), "heap": set()}
BELOW["vm"] = {"driver", "heap"}
BELOW["cache"] = BELOW["vm"] | {"vm"}
BELOW["observe"] = BELOW["cache"] | {"cache"}
BELOW["coordinator"] = BELOW["observe"] | {"observe"}
BELOW["staging"] = BELOW["coordinator"] | {"coordinator"}
BELOW["collective"] = BELOW["staging"]
BELOW["service"] = BELOW["staging"] | {"staging", "collective"}
BELOW["interop"] = BELOW["service"] | {"service"}
BELOW["cli"] = BELOW["interop"] | {"interop"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA = re.compile(r"^(cuda|cudaTypedefs|cuda_runtime\w*|driver_types|nccl)\.h$")
SOURCES = {".cpp", ".hpp", ".h", ".cu"}


def included(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def fault_of(layer, quote, name):
    """What is wrong with an include of `name` in `layer` (None: a public header), or None."""
    if CUDA.match(name) and layer != "driver":
        return "only lib/driver includes CUDA headers"
    if quote == "<":
        return None
    first = name.split("/")[0]
    if first == "weir":
        return None if (ROOT / "include" / name).exists() else "no such public header"
    if layer is None:
        return "a public header includes only public headers"
    if not (ROOT / "lib" / name).exists():
        return "written neither from lib/ nor from include/"
    if first != layer and first not in BELOW[layer]:
        return f"lib/{layer} is not above lib/{first}"
    return None


def include_faults():
    folders = [(None, ROOT / "include")] + [(path.name, path) for path in sorted((ROOT / "lib").iterdir()) if path.is_dir()]
    for layer, folder in folders:
        if layer is not None and layer not in BELOW:
            yield f"{folder}: a folder of lib/ that has no place among the layers"
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix not in SOURCES:
                continue
            for number, quote, name in included(path):
                fault = fault_of(layer, quote, name)
                if fault:
                    yield f"{path.relative_to(ROOT)}:{number}: {name}: {fault}"


def size_faults():
    for folder in ("lib", "include", "tests", "bench", "examples", "cmake"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES | {".py", ".sh", ".cmake", ".txt"}:
                lines = len(path.read_text().splitlines())
                if lines > MOST_LINES:
                    yield f"{path.relative_to(ROOT)}: {lines} lines, more than {MOST_LINES}"


def main():
    faults = [*include_faults(), *size_faults()]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
