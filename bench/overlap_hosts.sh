#!/usr/bin/env bash
# overlap_hosts.sh [ROUNDS] [STEPS]: what overlap hides between machines: two ranks of one thread, each in a network
# namespace of its own, behind links of RATE (2500mbit unless set) train ResNet-18 at 32 x 32 (45 MB of gradients) with
# BATCH images each (128) on synthetic data, in turns with parallel.overlap=true and =false.  Prints, for every run, the
# exposed communication of a step, the waiting alone and the step time from summary.json, then the medians and their
# ratio.  Exit code 1 unless the exposed time with overlap is below half of that without.  Needs root, ip and tc.
set -euo pipefail
rounds=${1:-3} steps=${2:-8}
lockstep=$(readlink -f "${LOCKSTEP:-$(dirname "$0")/../build/lockstep}")
rate=${RATE:-2500mbit}
export LOCKSTEP_EXPERIMENTS=${LOCKSTEP_EXPERIMENTS:-$(readlink -f "$(dirname "$0")/../experiments")}
export LOCKSTEP_SECRET="overlap $$"
work=$(mktemp -d)
net=10.$((100 + $$ % 100)).$(($$ / 100 % 250)) port=$((20000 + $$ % 20000))
host=(ov$$a ov$$b)
clean() {
    ip netns del "${host[0]}" 2>/dev/null || true
    ip netns del "${host[1]}" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT

ip netns add "${host[0]}"
ip netns add "${host[1]}"
ip -n "${host[0]}" link add veth0 type veth peer name veth0 netns "${host[1]}"
for i in 0 1; do
    ip -n "${host[$i]}" addr add "$net.$((i + 1))/24" dev veth0
    ip -n "${host[$i]}" link set lo up
    ip -n "${host[$i]}" link set veth0 up
    [ "$rate" = none ] || ip netns exec "${host[$i]}" tc qdisc add dev veth0 root tbf rate "$rate" burst 256kb latency 100ms
done

# train HOST OVERLAP: one of the two ranks, on its own core.
train() {
    ip netns exec "${host[$1]}" taskset -c "$1" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$1" \
        "$lockstep" train resnet18-cifar -n 1 --nodes 2 --threads 1 --quiet --run-dir "$work/run.$1" data.kind=synthetic \
        data.train_range=0:2048 data.test_range=2048:2112 batch.per_rank="${BATCH:-128}" train.steps="$steps" \
        train.checkpoint_every=none train.validate_every=none parallel.clip_norm=0 parallel.overlap="$2" >"$work/out.$1" 2>&1
}

# run OVERLAP: one line: milliseconds exposed, waiting, step.
run() {
    rm -rf "$work"/run.*
    train 1 "$1" &
    train 0 "$1" || { cat "$work/out.0" >&2; exit 1; }
    wait
    tr ',{' '\n\n' <"$work/run.0/summary.json" | awk -F: '
        /"step_s"/ { inside = 1 }
        /"exposed_s_per_step"/ { exposed = $2 + 0 }
        /"waiting_s_per_step"/ { waiting = $2 + 0 }
        inside && /"p50"/ { step = $2 + 0; inside = 0 }
        END { printf "%.3f %.3f %.3f\n", 1e3 * exposed, 1e3 * waiting, 1e3 * step }'
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

printf '%-6s %-8s %12s %12s %12s   (links of %s)\n' round overlap "exposed ms" "waiting ms" "step ms" "$rate"
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
