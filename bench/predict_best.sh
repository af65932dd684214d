#!/usr/bin/env bash
# predict_best.sh [OUTPUT]: is the configuration that `lockstep predict` names as the fastest the one that is the fastest?  Exhaustively:
# machines that are network namespaces are calibrated, all configurations of RANKS x strategies x BATCHES are predicted at once for an epoch
# (--until 1ep) and written down, and then every one of them is measured (`lockstep bench`; hybrid is ddp here, where groups are one rank).
# For every link a table, and by how much the named fastest and the named cheapest configuration are slower and dearer than the best that
# was measured.  Exit code 1 where that is more than 5 %.
#
#   HOSTS (4), LINKS ("200:0 1000:0": Mbit/s, and microseconds one way), EXPERIMENT (mnist-keras)
#   RANKS ("1 2 4", a rank a machine), BATCHES ("8 32"), CALIBRATE ("2 4")
#   SIZES of exchanges; SECONDS_EACH (4); ROUNDS (3): every configuration is measured so often, all in turns, and the median counts
#   LOCKSTEP, SHARE, SWITCH: many_hosts_lib.sh
# Needs root, ip, tc, python3 and a quiet core, or a share of one, for every machine.
set -euo pipefail
out=$(mkdir -p "${1:-predict-best}" && readlink -f "${1:-predict-best}")
hosts=${HOSTS:-4} calibrate=${CALIBRATE:-2 4} seconds=${SECONDS_EACH:-4}
. "$(dirname "$0")/many_hosts_lib.sh"
links=${LINKS:-200:0 1000:0} experiment=${EXPERIMENT:-mnist-keras} ranks=${RANKS:-1 2 4} strategies="ddp zero1 fsdp" batches=${BATCHES:-8 32}
sizes=${SIZES:-256,4KiB,64KiB,1MiB,4MiB,16MiB} most=${calibrate##* }
# list WORDS: with commas between them
list() { echo "$1" | tr ' ' ','; }

# Files by name: OUTPUT may have those of an earlier run with more batches or machines, or of another experiment.
files() { # LINK
    local n batch
    for n in $calibrate; do echo "$out/exchanges-$1-$n.json"; done
    echo "$out/joined-$1-$experiment-$most.json"
    for batch in $batches; do echo "$out/steps-$experiment-$batch.json"; done
}

# measure N ARGUMENT...: N machines together; one while the others take the same steps by themselves, as when it was calibrated: with their cores
# idle it would be a faster machine, for these cores are one processor's
measure() {
    local n=$1
    shift
    if [ "$n" -eq 1 ]; then apart "$hosts" "$work/alone.json" "$@" --json; else together "$n" "" "$@"; fi
}

for batch in $batches; do apart "$hosts" "$out/steps-$experiment-$batch.json" "$experiment" batch.per_rank="$batch" -n 1 --threads 1 --seconds "$seconds"; done
missed=0
for link in $links; do
    link "$link"
    for n in $calibrate; do together "$n" "$out/exchanges-$link-$n.json" --collectives --sizes "$sizes" -n 1 --threads 1; done
    together "$most" "$out/joined-$link-$experiment-$most.json" "$experiment" batch.per_rank="${batches%% *}" -n 1 --threads 1 --seconds "$seconds"
    # shellcheck disable=SC2046 # file names without spaces
    "$lockstep" predict --calibrate $(files "$link") --out "$out/calibration-$link.json" >"$out/calibration-$link.txt"
    : >"$out/measured-$link.jsonl"
    "$lockstep" predict "$experiment" --threads 1 --ranks "$(list "$ranks")" --ranks-per-node 1 --strategy all --batches "$(list "$batches")" \
        --until 1ep --samples 60000 --machine "$out/calibration-$link.json" --json | tail -n 1 >"$out/predicted-$link.json"
    for ((round = 0; round < ${ROUNDS:-3}; round++)); do
        for n in $ranks; do
            for strategy in $strategies; do
                [ "$n" -gt 1 ] || [ "$strategy" = "${strategies%% *}" ] || continue # one rank has no strategy
                for batch in $batches; do
                    measure "$n" "$experiment" batch.per_rank="$batch" parallel.strategy="$strategy" -n 1 --threads 1 --seconds "$seconds"
                    tail -n 1 "$work/said" >>"$out/measured-$link.jsonl"
                done
            done
        done
    done
    python3 - "$out" "$link" <<'END' || missed=1
import json, statistics, sys
out, link = sys.argv[1:]
p = json.loads(open(f"{out}/predicted-{link}.json").read())
rates = {}
for line in open(f"{out}/measured-{link}.jsonl"):
    m = json.loads(line)
    rates.setdefault((m["ranks"], m["strategy"] if m["ranks"] > 1 else "", m["batch_per_rank"]), []).append(m["samples_per_s"]["p50"])
spread = max(max(r) / min(r) - 1 for r in rates.values())
rates = {k: statistics.median(r) for k, r in rates.items()}
def strategy(x):  # one rank has none, and groups of one rank are ddp
    return "" if x["ranks"] == 1 else "ddp" if x["strategy"] == "hybrid" else x["strategy"]
def seconds(x):  # of an epoch, as measured
    update = x["ranks"] * x["batch_per_rank"]
    return -(-60000 // update) * update / rates[x["ranks"], strategy(x), x["batch_per_rank"]]
points = [x for x in p["points"] if "step_s" in x and x["strategy"] != "hybrid"]
print(f"\n{link}: an epoch of {p['experiment']}, {len(rates)} configurations, measured in turns; the same one differed by up to {100 * spread:.1f} %")
print("| ranks | strategy | batch | predicted s | from | to | measured s | error |")
print("|---|---|---|---|---|---|---|---|")
for x in points:
    if x["ranks"] == 1 and x["strategy"] != points[0]["strategy"]: continue
    t = x["run"]["time_s"]
    print(f"| {x['ranks']} | {x['strategy']} | {x['batch_per_rank']} | {t['mid']:.1f} | {t['lo']:.1f} | {t['hi']:.1f} | {seconds(x):.1f} | {100 * (t['mid'] / seconds(x) - 1):+.1f} % |")
bad = False
for what, cost in (("fastest", seconds), ("cheapest", lambda x: seconds(x) * x["nodes"])):
    named, best = p["points"][p["run"][what]], min(points, key=cost)
    worse = cost(named) / cost(best) - 1
    bad |= worse > 0.05
    show = lambda x: f"{x['ranks']} ranks {x['strategy']} batch {x['batch_per_rank']}"
    print(f"{what}: named {show(named)}, measured best {show(best)}: {100 * worse:.1f} % worse")
sys.exit(bad)
END
done
exit $missed
