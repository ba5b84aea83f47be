#!/usr/bin/env bash
# Installs what Weir needs on Debian 12 (as root, or with sudo) and leaves alone what is there.
#   cmake/install_dependencies.sh build    the library and the program
#   cmake/install_dependencies.sh tests    that, and tests, benchmarks with their peers, checkers
# Headers of CUDA and NCCL come from a toolkit where there is one, else from NVIDIA's Python packages into .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-tests}
build_packages=(g++ cmake ninja-build ccache pkgconf libfmt-dev libcli11-dev nlohmann-json3-dev zlib1g-dev)
test_packages=(git libgtest-dev libgmock-dev libbenchmark-dev libtbb-dev libhwloc-dev libmimalloc-dev libjemalloc-dev
  libgoogle-perftools-dev valgrind libc6-dbg clang-format clang-tidy python3)
python_packages=(python3-venv ca-certificates)

case $what in
  build) packages=("${build_packages[@]}") ;;
  tests) packages=("${build_packages[@]}" "${test_packages[@]}") ;;
  *) echo "install_dependencies.sh: '$what' is neither build nor tests" >&2; exit 2 ;;
esac

# True where the header lies in a toolkit or in the compiler's own path.
have_header() {
  local root
  for root in "${CUDAToolkit_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda; do
    [ -n "$root" ] && [ -e "$root/include/$1" ] && return 0
  done
  [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]
}

venv_has() { compgen -G ".venv/lib/python3*/site-packages/nvidia/*/include/$1" >/dev/null; }

# Pinned: what the tests were last run with.
wheels=()
have_header cuda.h || venv_has cuda.h || wheels+=('nvidia-cuda-runtime==13.0.96')
if [ "$what" = tests ]; then
  have_header nccl.h || venv_has nccl.h || wheels+=('nvidia-nccl-cu13==2.28.9')
fi
[ ${#wheels[@]} -eq 0 ] || packages+=("${python_packages[@]}")

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "neither root nor sudo; install by hand: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  command -v apt-get >/dev/null || { echo "no apt-get here; install by hand: ${missing[*]}" >&2; exit 1; }
  echo "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -q </dev/null >/dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "${missing[@]}" \
    </dev/null >/dev/null
fi

if [ ${#wheels[@]} -gt 0 ]; then
  echo "installing into .venv: ${wheels[*]}"
  # Debian's own python3: another one in PATH may come without venv.
  [ -x .venv/bin/pip ] || /usr/bin/python3 -m venv .venv
  # Headers only are wanted, so no dependencies.
  .venv/bin/pip install -q --no-deps --disable-pip-version-check "${wheels[@]}" </dev/null
fi
