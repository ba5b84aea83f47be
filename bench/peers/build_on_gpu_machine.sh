#!/usr/bin/env bash
# Builds the peers of a GPU machine with its own g++, without CMake: cub, and PyTorch and RMM where Python has them.
#   bench/peers/build_on_gpu_machine.sh OUT
# Then: weir_bench --peers=OUT. CUDA_HOME names the toolkit (/usr/local/cuda), PYTHON the interpreter (python3).
set -uo pipefail

out=${1:?usage: build_on_gpu_machine.sh OUT}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
mkdir -p "$out"

# The folder of an installed Python package, without importing it (PyTorch takes seconds).
package() {
  "$python" - "$1" <<'PY' 2>/dev/null
import importlib.util, sys
found = importlib.util.find_spec(sys.argv[1])
print(list(found.submodule_search_locations)[0] if found and found.submodule_search_locations else "")
PY
}

first_with() {  # the first of the folders $2... that holds $1
  local file=$1 folder
  shift
  for folder in "$@"; do
    if [[ -e $folder/$file ]]; then echo "$folder"; return; fi
  done
  return 1
}

nvidia=$(package nvidia)
cuda=${CUDA_HOME:-/usr/local/cuda}
include=$(first_with cuda_runtime_api.h "$cuda/include" "$cuda/targets/x86_64-linux/include" "$nvidia/cu13/include" \
  "$nvidia/cuda_runtime/include") || { echo "no cuda_runtime_api.h: set CUDA_HOME" >&2; exit 1; }
cudart=
for name in libcudart.so.13 libcudart.so.12; do
  if folder=$(first_with "$name" "$cuda/lib64" "$cuda/lib" "$cuda/targets/x86_64-linux/lib" "$nvidia/cu13/lib" \
      "$nvidia/cuda_runtime/lib" /usr/local/lib); then
    cudart=$folder/$name
    ln -sf "$cudart" "$out/$name"  # for weir_bench's cudaMalloc
    break
  fi
done
[[ -n $cudart ]] || { echo "no libcudart: set CUDA_HOME" >&2; exit 1; }
echo "CUDA: $include, $cudart"

build() {  # build NAME FLAGS...: one plugin
  local name=$1 started=$SECONDS
  shift
  if g++ -std=c++20 -O2 -fPIC -shared -fvisibility=hidden "$here/${name}_peer.cpp" -o "$out/weir_bench_$name.so" "$@" \
      -isystem "$include" "$cudart" -Wl,-rpath,"$(dirname "$cudart")"; then
    echo "$name: built in $((SECONDS - started)) s"
  else
    echo "$name: FAILED" >&2
    return 1
  fi
}

failed=0
if cub=$(first_with cub/util_allocator.cuh "$include/cccl" "$include" "$nvidia/cu13/include/cccl"); then
  build cub -isystem "$cub" || failed=1
else
  echo "cub: no cub/util_allocator.cuh here, left out"
fi
torch=$(package torch)
if [[ -e $torch/include/c10/cuda/CUDACachingAllocator.h ]]; then
  build torch -isystem "$torch/include" -L"$torch/lib" -lc10_cuda -lc10 -Wl,-rpath,"$torch/lib" || failed=1
else
  echo "torch: no PyTorch with CUDA here, left out"
fi
rmm=$(package librmm) logger=$(package rapids_logger)
if [[ -e $rmm/include/rmm/mr/pool_memory_resource.hpp && -n $logger ]]; then
  build rmm -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE -isystem "$rmm/include/rapids" -isystem "$rmm/include" \
    -isystem "$logger/include" -L"$rmm/lib64" -lrmm -Wl,-rpath,"$rmm/lib64" \
    -L"$logger/lib64" -lrapids_logger -Wl,-rpath,"$logger/lib64" || failed=1
else
  echo "rmm: no librmm and rapids_logger here, left out"
fi
exit $failed
