#!/usr/bin/env bash
# The loss scale and updates that are left out, in every way to run a step: three ranks, shared variables, gradients that
# are added up, stages, shards, and the device whose host is ahead of it.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
needs_python
common=(data.kind=synthetic data.train_range=0:96 data.test_range=96:110 batch.global=24 train.report_every=1st
    train.validate_every=none lr.schedule=linear optimizer.lr=0.001 lr.final=0 optimizer.name=adam --quiet)
first=1024 # the scale that runs begin with
half=(precision=fp16 fp16.growth_interval=4 train.steps=16)

# trained NAME STEPS ARGUMENT...: a run whose scales and rates are right
trained() {
    local name=$1 steps=$2
    shift 2
    run 0 train "$@" fp16.initial_scale=$first --run-dir "$name"
    n=$((n + 1))
    python3 "$here/grad_scaler.py" check "$name/metrics.jsonl" $first 4 "$steps" 0.001 16 || fail "$name: other scales or rates"
    grep -q "\"skipped_steps\": $(tr -cd , <<<"$steps," | wc -c)" "$name/summary.json" || fail "$name: $(grep skipped "$name/summary.json")"
}

# The rules as written out are those of the op that PyTorch calls.
/usr/bin/python3 "$here/grad_scaler.py" torch 65536 3 40 "" 1 3,4,9 2,4,6,8,10 1,2,3,4,5,6,7,8,9,10,11,12 >"$work/torch" 2>&1
code=$?
n=$((n + 1))
[ $code -eq 0 ] || [ $code -eq 77 ] || fail "PyTorch's scale is another: $(cat "$work/torch")"
[ $code -eq 77 ] && cat "$work/torch"

# --- ranks --------------------------------------------------------------------------------------------
export LOCKSTEP_OVERFLOW=3@0,4@0,9@0
trained one 3,4,9 mnist "${common[@]}" "${half[@]}"
export LOCKSTEP_OVERFLOW=3@2,4@1,9@0,9@2
trained three 3,4,9 mnist "${common[@]}" "${half[@]}" -n 3
grep -q 'step 9: .* is not finite on ranks 0 and 2 of 3' three/logs/rank-00000.log || fail "ranks are not named: $(cat three/logs/rank-00000.log)"
for more in parallel.share=always parallel.share=never parallel.accumulate=2 parallel.clip_norm=0.5 parallel.bucket_mb=0.05 parallel.wire=fp16; do
    trained "three-$more" 3,4,9 mnist "${common[@]}" "${half[@]}" -n 3 $more
done

# Where ranks keep pieces of a model, each sees its own pieces of the sums alone.
for strategy in zero1 fsdp "hybrid parallel.shard_group=1"; do
    # shellcheck disable=SC2086
    trained "three-$strategy" 3,4,9 mnist "${common[@]}" "${half[@]}" -n 3 parallel.clip_norm=0.5 parallel.strategy=$strategy
    grep -q 'step 9: the gradient of "conv1.weight" is not finite on ranks 0 and 2 of 3' "three-$strategy/logs/rank-00000.log" ||
        fail "$strategy: ranks are not named: $(cat "three-$strategy/logs/rank-00000.log")"
done
run 75 train mnist "${common[@]}" "${half[@]}" fp16.initial_scale=$first -n 3 parallel.strategy=fsdp train.pause_after=5st --run-dir fsdp-parts
run 0 train mnist "${common[@]}" train.pause_after=none --resume=fsdp-parts -n 3
run 0 train mnist "${common[@]}" "${half[@]}" fp16.initial_scale=$first -n 3 parallel.strategy=fsdp --run-dir fsdp
[ "$(hash fsdp-parts)" = "$(hash fsdp)" ] || fail "fsdp, stopped and continued: $(hash fsdp-parts), not $(hash fsdp)"

# --- the same bits ------------------------------------------------------------------------------------
# Whichever rank overflows, on any number of ranks, stopped in between or not.
same=(reproducible=true parallel.shards=4)
export LOCKSTEP_OVERFLOW=3@0,4@0,9@0
trained bits-1 3,4,9 mnist "${common[@]}" "${half[@]}" "${same[@]}"
for ranks in 2 3; do
    export LOCKSTEP_OVERFLOW=3@1,4@0,9@$((ranks - 1))
    for strategy in ddp fsdp; do
        trained "bits-$ranks-$strategy" 3,4,9 mnist "${common[@]}" "${half[@]}" "${same[@]}" -n $ranks parallel.strategy=$strategy
        [ "$(hash "bits-$ranks-$strategy")" = "$(hash bits-1)" ] || fail "$ranks ranks, $strategy: $(hash "bits-$ranks-$strategy"), one: $(hash bits-1)"
    done
done
export LOCKSTEP_OVERFLOW=3@1,4@0,9@0
run 75 train mnist "${common[@]}" "${half[@]}" fp16.initial_scale=$first "${same[@]}" train.pause_after=4st -n 2 --run-dir bits-parts
run 0 train mnist "${common[@]}" train.pause_after=none --resume=bits-parts -n 1
[ "$(hash bits-parts)" = "$(hash bits-1)" ] || fail "stopped and continued: $(hash bits-parts), not $(hash bits-1)"

# --- several losses, and stages -------------------------------------------------------------------------
# With a scale at which they do not overflow by themselves.
first=16
same=(reproducible=true parallel.shards=2)
small=(data.train_range=0:24 data.test_range=24:28 batch.global=12)
export LOCKSTEP_OVERFLOW=3@1,4@0,9@1
for trial in 'cosmogan model.size=16 model.width=2' 'aae model.points=16 model.sum_over=12'; do
    name=${trial%% *}
    # shellcheck disable=SC2086 # settings are words
    {
        trained "$name" 3,4,9 $trial "${common[@]}" "${small[@]}" "${half[@]}" -n 2 reproducible=false
        trained "$name-added" 3,4,9 $trial "${common[@]}" "${small[@]}" "${half[@]}" -n 2 parallel.accumulate=3 reproducible=false
        trained "$name-bits" 3,4,9 $trial "${common[@]}" "${small[@]}" "${half[@]}" -n 2 "${same[@]}"
        LOCKSTEP_OVERFLOW=3@0,4@0,9@0 trained "$name-bits-1" 3,4,9 $trial "${common[@]}" "${small[@]}" "${half[@]}" "${same[@]}"
    }
    [ "$(hash "$name-bits")" = "$(hash "$name-bits-1")" ] || fail "$name: $(hash "$name-bits"), one rank: $(hash "$name-bits-1")"
done

# --- a host that is ahead -------------------------------------------------------------------------------
first=1024
# The rate of a step is right although its host does not know yet whether the one before was left out.
tiny=(data.train_range=0:16 data.test_range=16:18 batch.global=4)
for more in "" "parallel.accumulate=2" "reproducible=true parallel.shards=2" "-n 2" "-n 2 parallel.clip_norm=0.5"; do
    for device in ref far; do
        # shellcheck disable=SC2086
        LOCKSTEP_OVERFLOW=3@0,4@0,9@0,16@0 trained "$device$more" 3,4,9,16 mnist "${common[@]}" "${tiny[@]}" "${half[@]}" $more --device $device
    done
    [ "$(hash "ref$more")" = "$(hash "far$more")" ] || fail "far $more: $(hash "far$more"), ref: $(hash "ref$more")"
done
LOCKSTEP_OVERFLOW=5@0 run 1 train mnist "${common[@]}" "${tiny[@]}" train.steps=10 train.check_gradients=true --device far --run-dir far-stop
says err 'step 5: the gradient of "conv1.weight" is not finite at learning rate'
grep -q '"steps": 5' far-stop/summary.json || fail "it did not end after step 5: $(grep steps far-stop/summary.json)"

[ $failures -eq 0 ] && echo "test_overflow_slow: $n checks passed"
exit $((failures > 0))
