#!/usr/bin/env bash
# Each header compiles alone. Public ones see no CUDA header; those of lib/ see the folder given as $1 (that of cuda.h).
set -euo pipefail
cd "$(dirname "$0")/../.."
cuda=${1:?usage: headers.sh FOLDER_OF_CUDA_H}

# Included from another file, since `#pragma once` in a main file is a warning.
compile_alone() {
  local header=$1
  shift
  printf '#include "%s"\n' "$header" |
    "${CXX:-c++}" -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
      -fsyntax-only -Iinclude "$@" -x c++ - || { echo "not self-contained: $header"; return 1; }
}
export -f compile_alone

failed=0
(cd include && find weir -name '*.hpp' -print0) |
  xargs -0 -r -n 1 -P "$(nproc)" bash -c 'compile_alone "$1"' _ || failed=1
(cd lib && find . -name '*.hpp' -printf '%P\0') |
  CUDA=$cuda xargs -0 -r -n 1 -P "$(nproc)" bash -c 'compile_alone "$1" -Ilib -isystem "$CUDA"' _ || failed=1
# The C interface is for C compilers too.
while IFS= read -r -d '' header; do
  printf '#include "%s"\n' "${header#include/}" | "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c - ||
    { echo "not C: $header"; failed=1; }
done < <(find include -name '*.h' -print0)
exit $failed
