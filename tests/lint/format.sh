#!/usr/bin/env bash
# Every source is as clang-format leaves it. Mend with: tests/lint/format.sh -i
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=(--dry-run -Werror)
[ "${1:-}" = -i ] && mode=(-i)
git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.h' '*.cu' |
  xargs -0 -r clang-format "${mode[@]}"
