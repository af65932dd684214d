#!/usr/bin/env bash
# predict_blind.sh [OUTPUT]: how near predictions come: little is calibrated, what more ranks will take is predicted and written down,
# and only then measured.
#
# PARTS ("hosts ranks"):
#   hosts   machines that are network namespaces of one rank of one thread, each on a core of its own, behind links of one switch. For
#           every link of LINKS exchanges are timed on as many of them as CALIBRATE says, and a step on the most of these; all other
#           steps are those of one machine alone (while HOSTS - 1 others do the same, each for itself: these cores are one processor's,
#           as those of machines are not); HOSTS machines are predicted.
#   ranks   ranks of this machine, with as many as CALIBRATE_RANKS says, and RANKS beside one another, without exchange; RANKS are
#           predicted.
# Steps of one machine alone that OUTPUT has already are not measured again (another link, the same machine).
# All predictions of a link, or of the machine, are in OUTPUT/predicted.jsonl before the first of their measurements begins.  A table of
# both, and at its end how many lay within their band, and within 15 % of the middle.  Exit code 1 where one missed either.
#
#   HOSTS (8), CALIBRATE ("2 4"), LINKS ("1000:0 2500:0 1000:200 2500:200": Mbit/s, and microseconds one way)
#   RANKS (all cores), CALIBRATE_RANKS ("1 2 4")
#   CASES, RANK_CASES: EXPERIMENT:STRATEGY:BATCH[:FROM,...]; FROM: the experiments whose steps are calibrated, if not this one
#   BATCHES ("8 32"): calibrated; SIZES of exchanges between machines; SECONDS_EACH (4); LOCKSTEP, SHARE, SWITCH: many_hosts_lib.sh
# Needs root, ip, tc, python3 and a quiet core, or a share of one, for every rank.  Where steps are mostly wire (links of 125 or 250 Mbit/s)
# fewer cores do; the table of docs/predict.md is PARTS=hosts LINKS="125:0 250:0 125:1000 250:1000" on two, with these CASES: mnist-keras:ddp:32
# mnist-keras:fsdp:32 mnist-keras:zero1:64 mnist-keras:ddp:16 mnist-keras:fsdp:8:resnet18-cifar mnist-keras:zero1:8 resnet18-cifar:ddp:8
# resnet18-cifar:fsdp:8 resnet18-cifar:ddp:16 resnet18-cifar-stem:ddp:16:resnet18-cifar,mnist-keras
set -euo pipefail
out=$(mkdir -p "${1:-predict-blind}" && readlink -f "${1:-predict-blind}")
hosts=${HOSTS:-8} calibrate=${CALIBRATE:-2 4} seconds=${SECONDS_EACH:-4}
. "$(dirname "$0")/many_hosts_lib.sh"
links=${LINKS:-1000:0 2500:0 1000:200 2500:200} parts=${PARTS:-hosts ranks}
ranks=${RANKS:-$cores} calibrate_ranks=${CALIBRATE_RANKS:-1 2 4}
cases=${CASES:-mnist-keras:ddp:32 mnist-keras:fsdp:32 resnet18-cifar:ddp:8 resnet18-cifar:fsdp:8 resnet18-cifar:ddp:16 resnet18-cifar:fsdp:32
    dcgan-d:ddp:8:dcgan-g,resnet18-cifar,mnist-keras dcgan-d:fsdp:8:dcgan-g,resnet18-cifar,mnist-keras
    resnet18-cifar-stem:ddp:16:dcgan-g,resnet18-cifar,mnist-keras}
rank_cases=${RANK_CASES:-mnist-keras:ddp:32 mnist-keras:fsdp:32 mnist-keras:zero1:16 resnet18-cifar:ddp:8 resnet18-cifar:fsdp:8 resnet18-cifar:ddp:16
    resnet18-cifar:zero1:32 resnet18-cifar:fsdp:32 dcgan-d:ddp:8 dcgan-d:fsdp:16 vit-tiny:ddp:8 vit-tiny:fsdp:8
    dcgan-g:ddp:8:dcgan-d,resnet18-cifar,mnist-keras resnet18-cifar-stem:ddp:16:dcgan-d,resnet18-cifar,mnist-keras}
batches=${BATCHES:-8 32} sizes=${SIZES:-256,4KiB,64KiB,1MiB,4MiB,16MiB}
rm -f "$out"/calibration-*
: >"$out/predicted.jsonl"
: >"$out/measured.jsonl"
: >"$out/order"

# each CASE: sets experiment, strategy, batch and from (experiments, a word each)
each() {
    IFS=: read -r experiment strategy batch from <<<"$1"
    from=${from:-$experiment}
    from=${from//,/ }
}

# calibrated CASES: experiments whose steps are needed
calibrated() {
    local case
    for case in $1; do
        each "$case"
        printf '%s\n' $from
    done | sort -u
}

# Files by name, and never by pattern: OUTPUT may have those of an earlier run with more machines or ranks, of which this one is to know
# nothing, and mnist-* is also mnist-keras.
# machines_files LINK: exchanges between machines, and steps of the experiments in $from, of one machine and of several
machines_files() {
    local x n batch
    for n in $calibrate; do echo "$out/exchanges-$1-$n.json"; done
    for x in $from; do
        for batch in $batches; do echo "$out/steps-$x-$batch.json"; done
        echo "$out/joined-$1-$x-${calibrate##* }.json"
    done
}

# ranks_files: the same of ranks of this machine
ranks_files() {
    local x n batch
    for n in $calibrate_ranks; do [ "$n" -eq 1 ] || echo "$out/inside-$n.json"; done
    for x in $from; do
        for batch in $batches; do echo "$out/own-$x-$batch.json" "$out/own-$x-beside-$batch.json"; done
        for n in $calibrate_ranks; do [ "$n" -eq 1 ] || echo "$out/own-$x-r$n.json"; done
    done
}

# predict KIND N RANKS_PER_NODE FILE...: writes down what the case set by `each` will take
predict() {
    local kind=$1 n=$2 per_node=$3 to
    shift 3
    to=$out/calibration-$kind-${from// /+}.json
    [ -f "$to" ] || "$lockstep" predict --calibrate "$@" --out "$to" >"${to%.json}.txt" 2>&1 || { cat "${to%.json}.txt" >&2; exit 1; }
    "$lockstep" predict "$experiment" batch.per_rank="$batch" parallel.strategy="$strategy" --threads 1 --ranks "$n" --ranks-per-node "$per_node" \
        --machine "$to" --json >"$work/said" || { cat "$work/said" >&2; exit 1; }
    tail -n 1 "$work/said" >>"$out/predicted.jsonl"
    echo "$kind $experiment:$strategy:$batch$([ "$from" = "$experiment" ] || echo ", steps of ${from// / and }")" >>"$out/order"
}

# -- machines
hosts_part() {
    local link case n x most=${calibrate##* }
    [ "$cores" -ge "$hosts" ] || [ -n "$share" ] || echo "predict_blind.sh: $hosts machines on $cores cores: only steps that are mostly wire say something of the predictions" >&2
    for experiment in $(calibrated "$cases"); do
        for batch in $batches; do [ -f "$out/steps-$experiment-$batch.json" ] || apart "$hosts" "$out/steps-$experiment-$batch.json" "$experiment" batch.per_rank="$batch" -n 1 --threads 1 --seconds "$seconds"; done
    done
    for link in $links; do
        link "$link"
        for n in $calibrate; do together "$n" "$out/exchanges-$link-$n.json" --collectives --sizes "$sizes" -n 1 --threads 1; done
        for x in $(calibrated "$cases"); do
            together "$most" "$out/joined-$link-$x-$most.json" "$x" batch.per_rank="${batches%% *}" -n 1 --threads 1 --seconds "$seconds"
        done
        for case in $cases; do
            each "$case"
            # shellcheck disable=SC2046 # file names without spaces
            predict "$link" "$hosts" 1 $(machines_files "$link")
        done
        for case in $cases; do
            each "$case"
            together "$hosts" "" "$experiment" batch.per_rank="$batch" parallel.strategy="$strategy" -n 1 --threads 1 --seconds "$seconds"
            tail -n 1 "$work/said" >>"$out/measured.jsonl"
        done
    done
}

# -- ranks of one machine
# alone ARGUMENT...: `bench` with ranks of one thread; what it says in $work/said
alone() { "$lockstep" bench "$@" --threads 1 >"$work/said" 2>"$work/err.0" || { cat "$work/err.0" >&2; exit 1; }; }

ranks_part() {
    local n case
    for n in $calibrate_ranks; do
        [ "$n" -eq 1 ] || alone --collectives -n "$n" --export "$out/inside-$n.json"
    done
    for experiment in $(calibrated "$rank_cases"); do
        for batch in $batches; do alone "$experiment" batch.per_rank="$batch" -n 1 --seconds "$seconds" --export "$out/own-$experiment-$batch.json"; done
        for batch in $batches; do alone "$experiment" batch.per_rank="$batch" -n 1 --beside $((ranks - 1)) --seconds "$seconds" --export "$out/own-$experiment-beside-$batch.json"; done
        for n in $calibrate_ranks; do
            [ "$n" -eq 1 ] || alone "$experiment" batch.per_rank="${batches%% *}" -n "$n" --seconds "$seconds" --export "$out/own-$experiment-r$n.json"
        done
    done
    for case in $rank_cases; do
        each "$case"
        # shellcheck disable=SC2046 # file names without spaces
        predict inside "$ranks" "$ranks" $(ranks_files)
    done
    for case in $rank_cases; do
        each "$case"
        alone "$experiment" batch.per_rank="$batch" parallel.strategy="$strategy" -n "$ranks" --seconds "$seconds" --json
        tail -n 1 "$work/said" >>"$out/measured.jsonl"
    done
}

for part in $parts; do "${part}_part"; done
python3 - "$out" <<'END'
import json, sys
out = sys.argv[1]
read = lambda name: [json.loads(line) for line in open(f"{out}/{name}.jsonl")]
inside = near = n = 0
print(f"| {'link':8} | {'case':26} | from ms |  middle |      to | measured | error |")
print("|---|---|---|---|---|---|---|")
for what, p, m in zip(open(f"{out}/order"), read("predicted"), read("measured")):
    link, case = what.strip().split(" ", 1)
    s, got = p["points"][0]["step_s"], m["step_s"]["p50"]
    error = s["mid"] / got - 1
    within = s["lo"] <= got <= s["hi"]
    n, inside, near = n + 1, inside + within, near + (abs(error) <= 0.15)
    print(f"| {link:8} | {case:26} | {1e3 * s['lo']:7.1f} | {1e3 * s['mid']:7.1f} | {1e3 * s['hi']:7.1f} | {1e3 * got:8.1f} | {100 * error:+.1f} %{'' if within else ' outside'} |")
print(f"{inside} of {n} within the band, {near} within 15 %")
sys.exit(inside < n or near < n)
END
