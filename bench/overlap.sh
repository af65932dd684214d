#!/usr/bin/env bash
# overlap.sh [ROUNDS] [STEPS]: what overlap hides: 2 ranks of 1 thread train ResNet-18 at 32 x 32 (45 MB of gradients)
# on synthetic data, in turns with parallel.overlap=true and =false.  Prints, for every run, the exposed communication
# of a step (adding up and waiting), the waiting alone and the step time from summary.json, then the medians and their
# ratio.  Exit code 1 unless the exposed time with overlap is below half of that without.
set -euo pipefail
rounds=${1:-5} steps=${2:-16}
lockstep=${LOCKSTEP:-$(dirname "$0")/../build/lockstep}
experiment=${EXPERIMENT:-resnet18-cifar}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run OVERLAP: one line: milliseconds exposed, waiting, step.
run() {
    rm -rf "$work/run"
    "$lockstep" train "$experiment" -n 2 --threads 1 --quiet --run-dir "$work/run" data.kind=synthetic \
        data.train_range=0:512 data.test_range=512:544 batch.per_rank="${BATCH:-16}" train.steps="$steps" train.checkpoint_every=none \
        train.validate_every=none parallel.clip_norm=0 "parallel.overlap=$1" >/dev/null
    tr ',{' '\n\n' <"$work/run/summary.json" | awk -F: '
        /"step_s"/ { inside = 1 }
        /"exposed_s_per_step"/ { exposed = $2 + 0 }
        /"waiting_s_per_step"/ { waiting = $2 + 0 }
        inside && /"p50"/ { step = $2 + 0; inside = 0 }
        END { printf "%.3f %.3f %.3f\n", 1e3 * exposed, 1e3 * waiting, 1e3 * step }'
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

printf '%-6s %-8s %12s %12s %12s\n' round overlap "exposed ms" "waiting ms" "step ms"
for ((round = 1; round <= rounds; round++)); do
    for overlap in true false; do
        read -r exposed waiting step < <(run $overlap)
        printf '%-6s %-8s %12s %12s %12s\n' "$round" $overlap "$exposed" "$waiting" "$step"
        echo "$exposed" >>"$work/exposed.$overlap"
        echo "$step" >>"$work/step.$overlap"
    done
done
awk -v a="$(median <"$work/exposed.true")" -v b="$(median <"$work/exposed.false")" \
    -v s="$(median <"$work/step.true")" -v t="$(median <"$work/step.false")" 'BEGIN {
    printf "exposed per step: %.3f ms with overlap, %.3f ms without: ratio %.2f; step time ratio %.3f\n", a, b, a / b, s / t
    exit !(a < b / 2) }'
