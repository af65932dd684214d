# hosts_lib.sh: two machines on one, for measurements: network namespaces of one rank of one thread each, behind links of RATE
# (2500mbit unless set; none: as fast as the machine can).  Sourced by overlap_hosts.sh, strategies_hosts.sh, exposed_hosts.sh and wire_floor.sh.  Needs root, ip and tc.
lockstep=$(readlink -f "${LOCKSTEP:-$(dirname "$0")/../build/lockstep}")
rate=${RATE:-2500mbit}
export LOCKSTEP_EXPERIMENTS=${LOCKSTEP_EXPERIMENTS:-$(readlink -f "$(dirname "$0")/../experiments")}
export LOCKSTEP_SECRET="between machines $$"
work=$(mktemp -d)
net=10.$((100 + $$ % 100)).$(($$ / 100 % 250)) port=$((20000 + $$ % 20000))
host=(ov$$a ov$$b)
clean() {
    ip netns del "${host[0]}" 2>/dev/null || true
    ip netns del "${host[1]}" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
. "$(dirname "$0")/overlap_lib.sh"

ip netns add "${host[0]}"
ip netns add "${host[1]}"
ip -n "${host[0]}" link add veth0 type veth peer name veth0 netns "${host[1]}"
for i in 0 1; do
    ip -n "${host[$i]}" addr add "$net.$((i + 1))/24" dev veth0
    ip -n "${host[$i]}" link set lo up
    ip -n "${host[$i]}" link set veth0 up
    [ "$rate" = none ] || ip netns exec "${host[$i]}" tc qdisc add dev veth0 root tbf rate "$rate" burst 256kb latency 100ms
done

# timed HOST COMMAND...: its output in $work/out.HOST, and the seconds of its processes in their code and in the system in $work/cpu.HOST
timed() {
    local i=$1 TIMEFORMAT='%U %S'
    shift
    { time "$@" >"$work/out.$i" 2>&1; } 2>"$work/cpu.$i"
}

# core_ms: milliseconds of a core that the last run took of each host
core_ms() { awk '{ s += $1 + $2 } END { print 1e3 * s / NR }' "$work/cpu.0" "$work/cpu.1"; }

# train_on HOST SETTING...: one of the two ranks, on its own core.
train_on() {
    local i=$1
    shift
    timed "$i" ip netns exec "${host[$i]}" taskset -c "$i" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$i" \
        "$lockstep" train resnet18-cifar -n 1 --nodes 2 --threads 1 --quiet --run-dir "$work/run${i#0}" data.kind=synthetic \
        data.train_range=0:2048 data.test_range=2048:2112 batch.per_rank="${BATCH:-128}" train.steps="$steps" \
        train.checkpoint_every=none train.validate_every=none parallel.clip_norm=0 "$@"
}

# train_both SETTING...: ResNet-18 at 32 x 32 (45 MB of gradients), BATCH images a rank, on synthetic data, in $work/run.
train_both() {
    rm -rf "$work/run" "$work/run1"
    train_on 1 "$@" &
    train_on 0 "$@" || { cat "$work/out.0" >&2; exit 1; }
    wait
}
