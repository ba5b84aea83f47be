#!/usr/bin/env bash
# Instructions of a hot pair on a lane (C1, W2), counted by callgrind: they do not depend on the machine's mood.
#   run.sh PROGRAM COMPILER [--peers]
# PROGRAM is weir_fast_path, COMPILER its compiler as golden.txt names it ("gcc-12"). Each count is the difference
# between runs of 2N and of N pairs, so what a first call costs cancels out. --peers counts tcmalloc and mimalloc too,
# for information. Exit: 0 well, 1 above what is kept or allowed, 77 no valgrind here.
set -euo pipefail

program=$1 compiler=$2 peers=${3:-}
golden=$(dirname "$0")/golden.txt
limit=85
pairs=50000

command -v valgrind >/dev/null || { echo "skipped: no valgrind on this machine"; exit 77; }

# Instructions inside the marked functions of one run.
count() {
  local bytes=$1 n=$2 who=$3 log
  if ! log=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
      --toggle-collect=hot_pairs --toggle-collect=peer_pairs "$program" "$bytes" "$n" "$who" 2>&1); then
    echo "$log" >&2
    return 1
  fi
  sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' <<<"$log"
}

per_pair() {
  local bytes=$1 who=$2 once twice
  once=$(count "$bytes" "$pairs" "$who")
  twice=$(count "$bytes" $((2 * pairs)) "$who")
  if [[ -z $once || -z $twice || $twice -le $once ]]; then
    echo "callgrind counted '$once' and '$twice' instructions for $pairs and twice as many pairs" >&2
    return 1
  fi
  awk -v a="$once" -v b="$twice" -v n="$pairs" 'BEGIN { printf "%.1f", (b - a) / n }'
}

above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }

passed=0 failed=0
for bytes in 512 65536; do
  measured=$(per_pair "$bytes" weir)
  kept=$(awk -v c="$compiler" -v b="$bytes" '$1 == c && $2 == b { print $3 }' "$golden")
  verdict="well"
  if above "$measured" "$limit"; then
    verdict="FAILED: the limit is $limit"
  elif [[ -z $kept ]]; then
    verdict="well (golden.txt keeps no number for $compiler)"
  elif above "$measured" "$(awk -v k="$kept" 'BEGIN { print k + 0.5 }')"; then
    verdict="FAILED: golden.txt keeps $kept; make it faster, or raise the number and say why"
  elif above "$(awk -v k="$kept" 'BEGIN { print k - 1 }')" "$measured"; then
    verdict="well, and below golden.txt's $kept: lower it"
  fi
  echo "pair of $bytes bytes: $measured instructions: $verdict"
  if [[ $verdict == FAILED* ]]; then failed=$((failed + 1)); else passed=$((passed + 1)); fi
done

if [[ $peers == --peers ]]; then
  for who in tcmalloc mimalloc; do
    for bytes in 512 65536; do
      echo "for information: $who, pair of $bytes bytes: $(per_pair "$bytes" "$who" || echo unknown) instructions"
    done
  done
fi
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
