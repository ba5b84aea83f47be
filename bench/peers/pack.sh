#!/usr/bin/env bash
# Puts weir_bench and what it needs of this machine into one folder, to be run on another machine that has neither
# Google Benchmark nor the host allocators:
#   bench/peers/pack.sh BUILD_FOLDER OUT
#   there: bench/run.sh --bench OUT/weir_bench --peers OUT [--peers FOLDER OF build_on_gpu_machine.sh]
set -euo pipefail

build=${1:?usage: pack.sh BUILD_FOLDER OUT} out=${2:?usage: pack.sh BUILD_FOLDER OUT}
mkdir -p "$out"
cp "$build/bin/weir_bench" "$out/weir_bench.bin"
for program in weir weir_fast_path; do
  if [[ -x $build/bin/$program ]]; then cp "$build/bin/$program" "$out/"; fi
done
strip --strip-debug "$out/weir_bench.bin" "$out"/weir "$out"/weir_fast_path 2>/dev/null || true

# The loader's own answer where each library lies; the peers by the names that weir_bench opens.
benchmark=$(ldd "$build/bin/weir_bench" | awk '/libbenchmark/ { print $3 }')
cp -L "$benchmark" "$out/"
for library in libmimalloc.so.2 libjemalloc.so.2 libtcmalloc_minimal.so.4; do
  path=$(/sbin/ldconfig -p | awk -v l="$library" '$1 == l { print $NF; exit }')
  if [[ -n $path ]]; then cp -L "$path" "$out/$library"; else echo "pack.sh: no $library here, left out" >&2; fi
done

cat >"$out/weir_bench" <<'RUN'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")" && pwd)
LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/weir_bench.bin" "$@"
RUN
chmod +x "$out/weir_bench"
du -sh "$out"
