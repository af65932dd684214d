#!/usr/bin/env bash
# predict_blind.sh [OUTPUT]: how near predictions come: machines (network namespaces of one rank of one thread, each on a core of its
# own, behind links of one switch) are calibrated with few of them, what more of them will take is predicted and written down, and
# only then measured.
#
# For every RATE (tc's units) exchanges are timed on as many machines as CALIBRATE says, and steps of one machine alone (while the
# others of the largest calibration do the same, since cores slow one another); then for every experiment, strategy and batch of CASES
# a prediction for HOSTS machines is written to OUTPUT/predicted.jsonl, and a bench of them is run.  A table of both, and at its end how
# many lay within their band, and within 15 % of the middle.  Exit code 1 where one missed both.
#
#   HOSTS (8), CALIBRATE ("2 4"), RATES ("1gbit 2500mbit"), DELAY ("": none; "100us": one way, where the kernel has netem)
#   CASES ("EXPERIMENT:STRATEGY:BATCH ..."; default mnist-keras and resnet18-cifar with ddp and fsdp), BATCHES ("8 32": calibrated)
#   SECONDS_EACH (4), LOCKSTEP (build/lockstep)
# Needs root, ip, tc, python3 and a quiet core for every machine.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
lockstep=$(readlink -f "${LOCKSTEP:-$here/build/lockstep}")
export LOCKSTEP_EXPERIMENTS=${LOCKSTEP_EXPERIMENTS:-$here/experiments} LOCKSTEP_SECRET="between machines $$"
out=$(mkdir -p "${1:-predict-blind}" && readlink -f "${1:-predict-blind}")
hosts=${HOSTS:-8} calibrate=${CALIBRATE:-2 4} rates=${RATES:-1gbit 2500mbit} delay=${DELAY:-} seconds=${SECONDS_EACH:-4}
cases=${CASES:-mnist-keras:ddp:32 mnist-keras:fsdp:32 resnet18-cifar:ddp:8 resnet18-cifar:fsdp:8 resnet18-cifar:ddp:16 resnet18-cifar:fsdp:32}
batches=${BATCHES:-8 32}
[ "$(nproc)" -ge "$hosts" ] || echo "predict_blind.sh: $hosts machines on $(nproc) cores: what is measured says nothing of the predictions" >&2
net=10.$((100 + $$ % 100)).$(($$ / 100 % 250)) port=$((20000 + $$ % 20000)) name=pb$$
clean() {
    for ((i = 0; i < hosts; i++)); do ip netns del "$name-$i" 2>/dev/null || true; done
    ip netns del "$name-s" 2>/dev/null || true
}
trap clean EXIT

# -- machines
ip netns add "$name-s"
ip -n "$name-s" link add br0 type bridge
ip -n "$name-s" link set br0 up
for ((i = 0; i < hosts; i++)); do
    ip netns add "$name-$i"
    ip -n "$name-$i" link add eth0 type veth peer name "p$i" netns "$name-s"
    ip -n "$name-s" link set "p$i" master br0 up
    ip -n "$name-$i" addr add "$net.$((i + 1))/24" dev eth0
    ip -n "$name-$i" link set lo up
    ip -n "$name-$i" link set eth0 up
done

# shape RATE: both directions of every link
shape() {
    local i at
    for ((i = 0; i < hosts; i++)); do
        for at in "$name-$i eth0" "$name-s p$i"; do
            tc -n "${at% *}" qdisc del dev "${at#* }" root 2>/dev/null || true
            if [ -n "$delay" ]; then
                tc -n "${at% *}" qdisc add dev "${at#* }" root handle 1: netem delay "$delay" limit 10000
                tc -n "${at% *}" qdisc add dev "${at#* }" parent 1: handle 10: tbf rate "$1" burst 256kb latency 100ms
            else
                tc -n "${at% *}" qdisc add dev "${at#* }" root tbf rate "$1" burst 256kb latency 100ms
            fi
        done
    done
}

# on HOST COMMAND...: on its core
on() {
    local i=$1
    shift
    ip netns exec "$name-$i" taskset -c "$((i % $(nproc)))" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$i" "$@"
}

# together N EXPORT ARGUMENT...: `bench` with these on N machines; machine 0's export goes to EXPORT ("": none), what it says to $out/said
together() {
    local n=$1 export=$2 i
    shift 2
    for ((i = 1; i < n; i++)); do on "$i" "$lockstep" bench "$@" --nodes "$n" >/dev/null 2>"$out/err.$i" & done
    on 0 "$lockstep" bench "$@" --nodes "$n" ${export:+--export "$export"} --json >"$out/said" 2>"$out/err.0" || { cat "$out"/err.* >&2; exit 1; }
    wait
    port=$((port + 1))
}

# apart N EXPORT ARGUMENT...: each of N machines by itself at the same time; machine 0's export
apart() {
    local n=$1 export=$2 i
    shift 2
    for ((i = 1; i < n; i++)); do on "$i" "$lockstep" bench "$@" >/dev/null 2>&1 & done
    on 0 "$lockstep" bench "$@" --export "$export" >"$out/said" 2>"$out/err.0" || { cat "$out/err.0" >&2; exit 1; }
    wait
}

most=${calibrate##* }
: >"$out/predicted.jsonl"
: >"$out/measured.jsonl"
for experiment in $(printf '%s\n' $cases | cut -d: -f1 | sort -u); do
    for batch in $batches; do apart "$most" "$out/steps-$experiment-$batch.json" "$experiment" batch.per_rank="$batch" -n 1 --threads 1 --seconds "$seconds"; done
done
for rate in $rates; do
    shape "$rate"
    for n in $calibrate; do together "$n" "$out/exchanges-$rate-$n.json" --collectives -n 1 --threads 1; done
    for case in $cases; do
        IFS=: read -r experiment strategy batch <<<"$case"
        "$lockstep" predict --calibrate "$out/exchanges-$rate-"*.json "$out/steps-$experiment-"*.json --out "$out/calibration-$rate-$experiment.json" >"$out/calibrated-$rate-$experiment.txt" 2>&1
        "$lockstep" predict "$experiment" batch.per_rank="$batch" parallel.strategy="$strategy" --threads 1 --ranks "$hosts" --ranks-per-node 1 \
            --machine "$out/calibration-$rate-$experiment.json" --json | tail -n 1 >>"$out/predicted.jsonl"
        together "$hosts" "" "$experiment" batch.per_rank="$batch" parallel.strategy="$strategy" -n 1 --threads 1 --seconds "$seconds"
        tail -n 1 "$out/said" >>"$out/measured.jsonl"
        echo "$rate $case" >>"$out/order"
    done
done
python3 - "$out" <<'END'
import json, sys
out = sys.argv[1]
read = lambda name: [json.loads(line) for line in open(f"{out}/{name}.jsonl")]
inside = near = n = missed = 0
print(f"| {'link':8} | {'case':26} | from ms |  middle |      to | measured | error |")
print("|---|---|---|---|---|---|---|")
for what, p, m in zip(open(f"{out}/order"), read("predicted"), read("measured")):
    link, case = what.split()
    s, got = p["points"][0]["step_s"], m["step_s"]["p50"]
    error = s["mid"] / got - 1
    within = s["lo"] <= got <= s["hi"]
    n, inside, near = n + 1, inside + within, near + (abs(error) <= 0.15)
    missed += not within and abs(error) > 0.15
    print(f"| {link:8} | {case:26} | {1e3 * s['lo']:7.1f} | {1e3 * s['mid']:7.1f} | {1e3 * s['hi']:7.1f} | {1e3 * got:8.1f} | {100 * error:+.1f} % |")
print(f"{inside} of {n} within the band, {near} within 15 %")
sys.exit(missed > 0)
END
