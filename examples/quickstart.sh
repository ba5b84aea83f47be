#!/usr/bin/env bash
# Weir in two minutes on a fresh Debian 12 machine: installs what it needs, builds, lets threads fight over devices
# (simulated ones where there is no GPU), and replays recorded training runs.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }

say "installing what is missing"
bash cmake/install_dependencies.sh build

say "building build/release/bin/weir"
cmake --preset release -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_BENCH=OFF >/dev/null
cmake --build build/release

weir=build/release/bin/weir
say "$weir info"
"$weir" info

say "$weir stress --devices 2 --threads 4 --seconds 5"
"$weir" stress --devices 2 --threads 4 --seconds 5

say "$weir replay tests/traces/*.csv.gz"
"$weir" replay tests/traces/*.csv.gz

say "all good"
