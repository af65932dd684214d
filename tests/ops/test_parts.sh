#!/usr/bin/env bash
# test_ops LIST PART/PARTS: the parts of a list are all of its cases, each once.
set -uo pipefail
export LS_TEST_DEVICE=ref
tests=$LS_BUILD_DIR/tests/ops/test_ops

# cases WORD...: how many there were
cases() {
    "$tests" "$@" | sed -n 's/.* ops of [0-9]*, \([0-9]*\) cases.*/\1/p'
}

all=$(cases random)
sum=0
for part in 1 2 3; do sum=$((sum + $(cases random $part/3))); done
[ "$all" -gt 3 ] && [ "$sum" -eq "$all" ] || { echo "FAILED: $all cases, $sum in parts" && exit 1; }
for wrong in 0/3 4/3 1/3x 1/; do
    "$tests" random $wrong >/dev/null 2>&1
    [ $? -eq 2 ] || { echo "FAILED: $wrong is taken" && exit 1; }
done
echo "$all cases in parts"
