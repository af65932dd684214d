#!/usr/bin/env bash
# strategies_hosts.sh [ROUNDS] [STEPS]: what a strategy costs between machines: two ranks of one thread, each in a network
# namespace of its own, behind links of RATE (2500mbit unless set) train ResNet-18 at 32 x 32 (P: 45 MB of weights) with
# BATCH images each (128), in turns replicated (ddp), with the optimiser's state in pieces (zero1), and fully sharded with
# and without gathering ahead (fsdp, parallel.prefetch).  Prints for each the median step, what of it is exposed
# communication, and the bytes that a rank sent in a step beside the formula (ddp, zero1: 2 P (N-1)/N, fsdp: 3 P (N-1)/N).
# Exit code 1 unless these agree within 1 %.  Needs root, ip and tc.
set -euo pipefail
rounds=${1:-3} steps=${2:-8}
. "$(dirname "$0")/hosts_lib.sh"

ways() {
    cat <<'LIST'
ddp 2 parallel.strategy=ddp
zero1 2 parallel.strategy=zero1
fsdp,prefetch=0 3 parallel.strategy=fsdp parallel.reshard=always parallel.prefetch=0
fsdp 3 parallel.strategy=fsdp parallel.reshard=always parallel.prefetch=auto
LIST
}

# sent: bytes of both ranks in $work/run.
sent() {
    sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' "$work/run/summary.json"
}

# What is sent besides steps (fsdp gathers weights for the test at the end) is in a run of one step, too.
while read -r way times settings; do
    # shellcheck disable=SC2086 # settings are words
    train_both $settings train.steps=1
    sent >"$work/short.$way"
done < <(ways)

for ((round = 1; round <= rounds; round++)); do
    while read -r way times settings; do
        # shellcheck disable=SC2086 # settings are words
        train_both $settings
        read -r exposed _ step < <(figures)
        echo "$step" >>"$work/step.$way"
        echo "$exposed" >>"$work/exposed.$way"
        echo $((($(sent) - $(cat "$work/short.$way")) / 2 / (steps - 1))) >>"$work/sent.$way"
    done < <(ways)
done

parameters=$("$lockstep" plan resnet18-cifar data.kind=synthetic | sed -n 's/^parameters *\([0-9,]*\) in .*/\1/p' | tr -d ,)
echo "links of $rate, ${BATCH:-128} images a rank, $parameters parameters, medians of $rounds rounds"
printf '%-18s %10s %12s %14s %14s\n' strategy "step ms" "exposed ms" "bytes sent" "formula"
status=0
while read -r way times settings; do
    awk -v way="$way" -v step="$(median <"$work/step.$way")" -v exposed="$(median <"$work/exposed.$way")" \
        -v sent="$(median <"$work/sent.$way")" -v formula="$((times * 4 * parameters / 2))" 'BEGIN {
        printf "%-18s %10.1f %12.1f %14.0f %14.0f\n", way, step, exposed, sent, formula
        exit !(sent > 0.99 * formula && sent < 1.01 * formula) }' || status=1
done < <(ways)
exit $status
