#!/usr/bin/env bash
# Installs a built tree into an empty prefix, moves it, and builds and runs a user's program against it: with
# find_package (shared and static library) and with pkg-config.
#   tests/install/run.sh BUILD_FOLDER COMPILER
set -euo pipefail
build=${1:?usage: run.sh BUILD_FOLDER COMPILER}
compiler=${2:?usage: run.sh BUILD_FOLDER COMPILER}
user=$(cd "$(dirname "$0")/user" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
# Nothing of the caller's may help: the package has to be found where it was put.
unset CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH weir_DIR

cmake --install "$build" --prefix "$place/first" >"$place/install.log" || { cat "$place/install.log"; exit 1; }
# Installed trees get moved (packages, containers): no path of the first place may be left in it.
mv "$place/first" "$place/prefix"
if grep -rn --include='*.cmake' --include='*.pc' -e "$place/first" -e "$build" "$place/prefix"; then
  echo "these lines name the folder that the package was made in"
  exit 1
fi

run() {
  echo "--- $1"
  shift
  env -u WEIR_DRIVER "$@"
}

cmake -S "$user" -B "$place/user" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$place/prefix" >"$place/user.log" || { cat "$place/user.log"; exit 1; }
cmake --build "$place/user"
run "find_package, shared" "$place/user/user_shared"
run "find_package, static" "$place/user/user_static"

PKG_CONFIG_PATH=$(dirname "$(find "$place/prefix" -name weir.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$compiler" -std=c++20 "$user/main.cpp" -o "$place/by_pkg_config" $(pkg-config --cflags --libs weir)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir weir) run "pkg-config" "$place/by_pkg_config"

if [ -x "$place/prefix/bin/weir" ]; then
  run "the program" "$place/prefix/bin/weir" info --backend sim
fi
