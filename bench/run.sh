#!/usr/bin/env bash
# Measures the table of what Weir must reach: alternating runs of weir_bench, every number a ratio within one run, the
# medians written as <out>/<date>-<machine>.json and .md.
#   bench/run.sh [--build DIR] [--bench FILE] [--peers DIR] [--out DIR] [--runs N] [--min-time S] [--label TEXT] [--all]
# --build    build folder with bin/weir_bench, bin/weir_fast_path, bin/weir, peers/  (build/release)
# --bench    another weir_bench, say a packed one (peers/pack.sh)
# --peers    folder of peers; may be given again
# --label    the file's name after the date ("two-cores" or "gpu" by itself)
# --all      every benchmark, not only those of the table
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release bench='' out=$root/bench/results runs=5 min_time=0.2 label='' all=0
given="bench/run.sh $*"
peers=()
while (($#)); do
  case $1 in
    --build) build=$2; shift 2 ;;
    --bench) bench=$2; shift 2 ;;
    --peers) peers+=("$2"); shift 2 ;;
    --out) out=$2; shift 2 ;;
    --runs) runs=$2; shift 2 ;;
    --min-time) min_time=$2; shift 2 ;;
    --label) label=$2; shift 2 ;;
    --all) all=1; shift ;;
    *) echo "run.sh: unknown option '$1'" >&2; exit 2 ;;
  esac
done
bench=${bench:-$build/bin/weir_bench}
[[ -x $bench ]] || { echo "run.sh: no $bench: build it, or name one with --bench" >&2; exit 2; }
[[ -d $build/peers ]] && peers+=("$build/peers")

# Only what the table's rows need: a run stays under a minute.
most=$(nproc)
filter="^(pair/(weir|weir_raw|tcmalloc|pytorch)/(512|65536)"
filter+="|mixed/(weir|mimalloc|jemalloc|tcmalloc|glibc|pytorch|none)/threads:(1|2|$most)"
filter+="|shared_stream/(weir|pytorch)/threads:$most|handoff/(weir|mimalloc|pytorch|none)/pairs:1"
filter+="|batch/(weir|cudaMalloc)|metadata/weir/256)\$"
((all)) && filter='.*'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=(--benchmark_min_time="$min_time" --benchmark_out_format=json)
for folder in "${peers[@]}"; do options+=("--peers=$folder"); done
for ((i = 1; i <= runs; ++i)); do
  order=()
  ((i % 2)) || order=(--reverse)
  echo "run $i of $runs"
  "$bench" "${options[@]}" "${order[@]}" --benchmark_filter="$filter" --benchmark_out="$work/run$i.json" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
done

extra=()
if [[ -x $build/bin/weir_fast_path ]] && command -v valgrind >/dev/null; then
  # A number above the limit is a row of the table, not the end of the run.
  "$root/tests/instructions/run.sh" "$build/bin/weir_fast_path" none >"$work/instructions" || true
  extra+=(--instructions "$work/instructions")
fi
if [[ -x $build/bin/weir ]]; then
  mapfile -t traces < <(find "$root/tests/traces" -type f -name '*.gz' | sort)
  if ((${#traces[@]})) && "$build/bin/weir" replay "${traces[@]}" --backend sim --json >"$work/replay.json"; then
    extra+=(--replay "$work/replay.json")
  fi
fi
python3 "$root/bench/compare.py" table --out "$out" --label "$label" --command "$given" "${extra[@]}" "$work"/run*.json
