#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a configured build, side by side and within a bounded time.

    tests/lint/tidy.py BUILD_FOLDER [--seconds S] [--changed BASE]

A file that passed is not checked again until it, a header or the checks change (kept in BUILD_FOLDER/tidy). The library
comes first, so that what the time does not reach is tests; how much was reached is printed.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("lib", "examples", "bench", "tests")


def sources_of(build):
    """Our sources among the build's compile commands, the library's first."""
    commands = json.loads((build / "compile_commands.json").read_text())
    paths = {Path(entry["file"]) for entry in commands}
    ours = [path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT) and path.is_file()]
    ours = [path for path in ours if path.parts[0] in FOLDERS and path.suffix == ".cpp"]
    return sorted(ours, key=lambda path: (FOLDERS.index(path.parts[0]), path))


def changed_since(base):
    names = subprocess.run(["git", "diff", "--name-only", base, "--"], cwd=ROOT, check=True, capture_output=True, text=True)
    return {Path(name) for name in names.stdout.splitlines()}


def digest(*paths):
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=float, default=600, help="start no further file after this time")
    parser.add_argument("--changed", metavar="BASE", help="only sources that differ from this commit")
    options = parser.parse_args()

    sources = sources_of(options.build)
    if options.changed:
        changed = changed_since(options.changed)
        sources = [path for path in sources if path in changed]
    headers = sorted(path for folder in ("include", *FOLDERS) for path in (ROOT / folder).rglob("*.h*"))
    common = digest(ROOT / ".clang-tidy", ROOT / "tests" / ".clang-tidy", *headers)
    passed = options.build / "tidy"
    passed.mkdir(exist_ok=True)
    end = time.monotonic() + options.seconds

    def check(path):
        """None: no time left; "": passed; else what clang-tidy says."""
        stamp = passed / hashlib.sha256((str(path) + common + digest(ROOT / path)).encode()).hexdigest()
        if stamp.exists():
            return ""
        if time.monotonic() > end:
            return None
        # g++ counts sign conversions apart from -Wconversion; the compile commands are g++'s.
        command = ["clang-tidy", "-p", options.build, "--quiet", "--extra-arg=-Wno-sign-conversion",
                   "--extra-arg=-Wno-unknown-warning-option", path]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if result.returncode == 0:
            stamp.touch()
            return ""
        return result.stdout.strip() or result.stderr.strip()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, sources))
    faults = [result for result in results if result]
    for fault in faults:
        print(fault)
    left = results.count(None)
    print(f"clang-tidy: {len(sources) - left} of {len(sources)} files checked, {len(faults)} with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
