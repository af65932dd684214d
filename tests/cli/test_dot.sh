#!/usr/bin/env bash
# test_dot.sh: Graphviz reads what `lockstep plan --graph FILE.dot` writes, and finds every block in it.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
command -v dot >/dev/null || { echo "skipped: dot is not installed (graphviz)"; exit 77; }

run 0 plan mnist -n 2 --graph "$work/plan.dot"
n=$((n + 1))
dot -Tplain "$work/plan.dot" >"$work/plain" || fail "dot does not read what plan wrote"
diff <(grep -c fillcolor "$work/plan.dot") <(grep -c '^node ' "$work/plain") || fail "dot finds another number of blocks"
n=$((n + 1))
grep -q '^edge ' "$work/plain" || fail "dot finds no edges"

[ "$failures" -eq 0 ] && echo "dot: $n checks, all as expected"
exit $((failures > 0))
