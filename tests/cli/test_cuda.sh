#!/usr/bin/env bash
# --device cuda where there is no GPU: every command that would compute says what is missing, with exit code 2 and
# nothing created; those that only describe work.  With a GPU, one step of training on it.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
cd "$work" || exit 1

run 0 info
if grep -q '^backend cuda  *not usable' "$work/out"; then
    for command in train bench plan; do
        run 2 $command mnist-small --device cuda
        says err '--device cuda: '
    done
    says err 'NVIDIA driver'
    [ ! -e runs ] || fail "a run was created"
    run 0 train mnist-small --device cuda --dry-run
else
    run 0 train mnist-small --device cuda train.steps=1 --run-dir run
fi
[ "$failures" -eq 0 ] && echo "cuda: $n checks, all as expected"
exit $((failures > 0))
