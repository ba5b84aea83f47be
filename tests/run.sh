#!/usr/bin/env bash
# Installs what the tests need, builds, and runs all of them: release, asan and tsan builds, and the checks of the
# sources. Ends within 45 minutes on two cores; the exit status says whether all passed.
#   tests/run.sh            everything
#   tests/run.sh --quick    the release build's tests and the quick checks
#   --no-install            with either: installs nothing
set -uo pipefail
exec 2>&1  # messages stay beside the step they belong to
cd "$(dirname "$0")/.." || exit 1

quick=no
install=yes
for argument in "$@"; do
  case $argument in
    --quick) quick=yes ;;
    --no-install) install=no ;;
    *) echo "tests/run.sh: unknown option '$argument' (--quick, --no-install)" >&2; exit 2 ;;
  esac
done

passed=0
failed=0
skipped=0
failures=()
started=$SECONDS

note() {  # RESULT NAME: counts one check
  if [ "$1" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    failures+=("$2")
  fi
}

step() {  # NAME COMMAND...: runs it and counts it
  local name=$1 from=$SECONDS result=0
  shift
  echo "== $name"
  "$@" </dev/null || result=$?
  echo "== $name: $([ $result -eq 0 ] && echo passed || echo FAILED), $((SECONDS - from)) s"
  note $result "$name"
  return $result
}

# A build that fails is one failure; its tests are not counted.
build() { cmake --preset "$1" >"build/$1.log" 2>&1 || { cat "build/$1.log"; return 1; }; cmake --build "build/$1"; }

run_tests() {  # PRESET [WRAPPER...]
  local preset=$1 from=$SECONDS report=$PWD/build/$1/tests.xml result=0 total=0 bad=0 left_out=0
  shift
  echo "== tests of $preset"
  rm -f "$report"
  "$@" ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)" --no-tests=error --output-junit "$report" \
    </dev/null || result=$?
  if [ -e "$report" ]; then
    total=$(sed -n 's/^\ttests="\([0-9]*\)".*/\1/p' "$report" | head -n 1)
    bad=$(sed -n 's/^\tfailures="\([0-9]*\)".*/\1/p' "$report" | head -n 1)
    left_out=$(sed -n 's/^\tskipped="\([0-9]*\)".*/\1/p' "$report" | head -n 1)
  fi
  # ctest fails without a failed test where it found none, or could not start one.
  if [ $result -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1 total=$((total + 1)); fi
  passed=$((passed + total - bad - left_out))
  failed=$((failed + bad))
  skipped=$((skipped + left_out))
  if [ "$bad" -gt 0 ]; then failures+=("$bad tests of $preset (see above)"); fi
  echo "== tests of $preset: $((total - bad - left_out)) of $total passed, $left_out skipped, $((SECONDS - from)) s"
}

mkdir -p build
if [ $install = yes ]; then
  step "install" bash cmake/install_dependencies.sh tests || { echo "0 passed, 1 failed"; exit 1; }
fi

step "includes and sizes" python3 tests/lint/layers.py
step "clang-format" bash tests/lint/format.sh
if step "build release" build release; then
  step "headers alone" bash tests/lint/headers.sh "$(sed -n 's/^-- CUDA headers: \(.*\) (.*/\1/p' build/release.log)"
  run_tests release
fi

if [ $quick = no ]; then
  if step "build asan" build asan; then run_tests asan; fi
  if step "build tsan" build tsan; then
    # The sanitizer of g++ 12 cannot live with more random bits in addresses than it knows; run without, where allowed.
    fixed=()
    if setarch -R true 2>/dev/null; then fixed=(setarch -R); fi
    run_tests tsan "${fixed[@]}"
  fi
  # The library comes first; what is left of the 45 minutes says how far into the tests it gets.
  left=$((2520 - SECONDS + started))
  step "clang-tidy" python3 tests/lint/tidy.py build/release --seconds $((left < 120 ? 120 : left > 600 ? 600 : left))
fi

echo "== $((SECONDS - started)) s in all"
for failure in "${failures[@]}"; do
  echo "FAILED: $failure"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
