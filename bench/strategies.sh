#!/usr/bin/env bash
# strategies.sh PROGRAM[@DEVICE]: every built-in trial under every parallel.strategy on 2, 3, 4 and 8 ranks, beside one process.
#
# In reproducible mode the weights must be those of one rank to the bit, whatever the strategy; without it the loss after the
# last step must be that of one process within 2 % (sums in another order, and some steps that multiply the difference; LIMIT=5
# sets another).  Each plainly, with gradients that are clipped, and accumulated.  RECOMPUTE=unit does all that with
# train.recompute=unit.  TRIALS="mnist linear", RANKS="2 4": only those.  JOBS=16: so many runs at once (1).
# Exit status: 0 all equal, 1 not (differing lines are printed), 2 a mistake.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
export LOCKSTEP_TUNE=off OMP_NUM_THREADS=1 program=${1%@*} device=cpu recompute=${RECOMPUTE:-}
case "$1" in *@*) device=${1##*@} ;; esac
runs=$(mktemp -d)
export runs
trap 'rm -rf "$runs"' EXIT

# A trial, the steps that are taken, and its settings; the global batch is 8.
trials() {
    cat <<'LIST'
mnist 4
mnist-keras 2
linear 4
resnet18-cifar 1
vit-tiny 3
cosmogan 2 model.size=32 model.width=4
wgan-gp 2
aae 2 model.points=32 model.sum_over=8
cyclegan 1 model.size=32 model.blocks=0
LIST
}

# result TRIAL MODE WAY STRATEGY RANKS SETTING...: "TRIAL MODE WAY STRATEGY RANKS RESULT"
result() {
    local line="$1 $2 $3 $4 $5" trial=$1 mode=$2 strategy=$4 ranks=$5 run how
    shift 5
    run=$(mktemp -d "$runs/XXXXXX")
    how=(parallel.strategy="$strategy")
    [ "$strategy" != hybrid ] || how+=(parallel.shard_group=2)
    [ -z "$recompute" ] || how+=(train.recompute="$recompute")
    if ! "$program" train "$trial" -n "$ranks" --device "$device" --threads 1 --run-dir "$run/run" data.kind=synthetic \
        data.train_range=0:64 data.test_range=64:72 train.validate_every=none train.checkpoint_every=none train.report_every=1st \
        "${how[@]}" "$@" >"$run/log" 2>&1; then
        echo "$line failed: $(tail -n 1 "$run/log")"
    elif [ "$mode" = bits ]; then
        echo "$line $(sed -n 's/.*"weights_xxh3": *"\([0-9a-f]*\)".*/\1/p' "$run/run/summary.json")"
    else
        echo "$line $(grep '"train/' "$run/run/metrics.jsonl" | tail -n 1 | grep -o '"train/[a-z_]*loss[a-z_]*": [-0-9.e+]*' |
            sort | sed -n '1s/.*: //p')"
    fi
    rm -rf "$run"
}

# cases: the arguments of `result`, one a line.
cases() {
    local trial steps rest way settings strategy ranks
    while read -r trial steps rest; do
        case " ${TRIALS:-$trial} " in *" $trial "*) ;; *) continue ;; esac
        for way in plain clipped accumulated; do
            settings="$rest train.steps=$steps batch.global=8"
            [ $way != clipped ] || settings+=" parallel.clip_norm=0.5"
            [ $way != accumulated ] || settings="$rest train.steps=$steps batch.global=16 parallel.accumulate=2"
            for mode in bits loss; do
                case $mode in
                bits) settings+=" reproducible=true parallel.shards=8" ;;
                loss) settings="${settings% reproducible=*} reproducible=false parallel.sync_batchnorm=true" ;;
                esac
                echo "$trial $mode $way ddp 1 $settings"
                for ranks in ${RANKS:-2 3 4 8}; do
                    for strategy in ddp zero1 fsdp hybrid; do
                        [ $strategy != hybrid ] || [ $((ranks % 2)) -eq 0 ] || continue
                        echo "$trial $mode $way $strategy $ranks $settings"
                    done
                done
            done
        done
    done < <(trials)
}

export -f result
# shellcheck disable=SC2016 # $0 and $@ are of the shell that xargs begins
cases | xargs -P "${JOBS:-1}" -L 1 bash -c 'result "$0" "$@"' | sort >"$runs/all"
awk -v limit="${LIMIT:-2}" '
    { key = $1 " " $2 " " $3 }
    $5 == 1 { one[key] = $6 }
    { line[NR] = $0; of[NR] = key; got[NR] = $6; mode[NR] = $2 }
    END {
        for (i = 1; i <= NR; i++) {
            want = one[of[i]]
            if (mode[i] == "bits") wrong = got[i] != want || want == "" || got[i] == "failed:"
            else {
                off = got[i] - want; if (off < 0) off = -off
                size = want < 0 ? -want : want
                wrong = got[i] == "failed:" || want == "" || off > limit / 100 * size
            }
            if (wrong) { print line[i] " (one process: " want ")"; bad++ }
        }
        printf "%d runs, %d differ\n", NR, bad
        exit bad > 0
    }' "$runs/all"
