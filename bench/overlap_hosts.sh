#!/usr/bin/env bash
# overlap_hosts.sh [ROUNDS] [STEPS]: what overlap hides between machines: two ranks of one thread, each in a network
# namespace of its own, behind links of RATE (2500mbit unless set) train ResNet-18 at 32 x 32 (45 MB of gradients) with
# BATCH images each (128) on synthetic data, in turns with parallel.overlap=true and =false.  Prints, for every run, the
# exposed communication of a step, the waiting alone and the step time from summary.json, then the medians and their
# ratio.  RATE=none: as fast as the machine can.  Exit code 1 unless the exposed time with overlap is below half of that
# without.  Needs root, ip and tc.
set -euo pipefail
rounds=${1:-3} steps=${2:-8}
. "$(dirname "$0")/hosts_lib.sh"

train() {
    train_both parallel.overlap="$1"
}

echo "links of $rate"
in_turns "$rounds"
