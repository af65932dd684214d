#!/usr/bin/env bash
# overlap.sh [ROUNDS] [STEPS]: what overlap hides on one machine: 2 ranks of 1 thread train ResNet-18 at 32 x 32 (45 MB of
# gradients) with BATCH images each (16) on synthetic data, in turns with parallel.overlap=true and =false.  Prints, for every
# run, the exposed communication of a step (adding up and waiting), the waiting alone and the step time from summary.json, then
# the medians and their ratio.  Exit code 1 unless the exposed time with overlap is below half of that without.
set -euo pipefail
rounds=${1:-5} steps=${2:-16}
lockstep=${LOCKSTEP:-$(dirname "$0")/../build/lockstep}
experiment=${EXPERIMENT:-resnet18-cifar}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/overlap_lib.sh"

train() {
    "$lockstep" train "$experiment" -n 2 --threads 1 --quiet --run-dir "$work/run" data.kind=synthetic \
        data.train_range=0:512 data.test_range=512:544 batch.per_rank="${BATCH:-16}" train.steps="$steps" train.checkpoint_every=none \
        train.validate_every=none parallel.clip_norm=0 "parallel.overlap=$1" >/dev/null
}

in_turns "$rounds"
