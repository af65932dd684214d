#!/usr/bin/env bash
# The device is a setting: --device and device= are one, a run keeps it, a resume says when it is another, and words that name no
# device are refused everywhere.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
small=(linear model.size=4 model.channels=1 model.classes=2 data.kind=synthetic data.train_range=0:16 data.test_range=16:20
    batch.per_rank=4 train.report_every=1st)

# device RUN: as its config.yaml has it
device() {
    sed -n 's/^device: "\(.*\)"$/\1/p' "$1/config.yaml"
}

# What names no device, whoever asks.
for word in cuda: cuda:x cuda:-1 cuda:1x cuda:1:2 cuda:99999 cpu:1 ref:0 abacus gpu; do
    run 2 train "${small[@]}" --device "$word"
    says err "no device \"$word\""
    run 2 plan "${small[@]}" "device='$word'"
    says err "no device \"$word\""
done
run 2 train "${small[@]}" device=cuda: # a mapping, for YAML
for command in bench submit 'scale --ranks 1 --mode weak'; do
    # shellcheck disable=SC2086 # words
    run 2 $command linear --device cpu:1
    says err 'there is one "cpu", without a number'
done
run 2 bench --compare a b --device ref
says err 'leave --device out'
printf 'model: {trial: linear}\ndevice: abacus\n' >odd.yaml
run 2 plan odd.yaml
says err 'odd.yaml:2:9: no device "abacus"; there are: cpu, cuda, ref'
# Rounding that a device does not do.
for device in cpu ref; do
    run 2 train "${small[@]}" precision=tf32 --device "$device"
    says err "device=$device computes them in fp32; write device=cuda (--device cuda), or precision=fp32"
done
run 0 train "${small[@]}" precision=tf32 --device cuda --dry-run --json
holds 'o["settings"]["precision"] == "tf32"'
[ -z "$(ls -d runs studies 2>/dev/null)" ] || fail "something was created"

# The option is the setting, and holds; a file may say it, too.
run 0 train "${small[@]}" device=far --device ref --dry-run --json
holds 'o["settings"]["device"] == "ref"'
run 0 train "${small[@]}" --device cuda:3 --dry-run --json
holds 'o["settings"]["device"] == "cuda:3"'
printf 'model: {trial: linear, size: 4, channels: 1}\ndevice: ref\n' >ref.yaml
run 0 plan ref.yaml batch.per_rank=2 --json
grep -q '"device":"ref"' "$work/out" || fail "plan does not take the file's device: $(head -c 300 "$work/out")"

# A run keeps its device, also when it goes on; the same bits as without a stop.
run 0 train "${small[@]}" device=ref train.steps=6 --run-dir whole --quiet
run 75 train "${small[@]}" --device ref train.steps=6 train.pause_after=3st --run-dir parts --quiet
[ "$(device parts)" = ref ] || fail "config.yaml has the device \"$(device parts)\""
cp -r parts other && cp -r parts earlier && cp -r parts gone
run 2 train --resume=
says err 'has an empty value'
run 0 train --resume parts
grep -q 'changed       device' "$work/out" && fail "the device changed: $(cat "$work/out")"
[ "$(device parts)" = ref ] && [ "$(hash parts)" = "$(hash whole)" ] || fail "resumed: $(device parts), $(hash parts), whole $(hash whole)"
grep -q '"device": "ref"' parts/summary.json || fail "the summary does not name the device"
run 0 train --resume other --device cpu
says out 'changed       device: ref -> cpu (the run was left on ref and goes on with cpu)'
[ "$(device other)" = cpu ] || fail "config.yaml has the device \"$(device other)\" after it was changed"
run 0 train --resume other device=ref train.steps=7 --json
grep -q '{"event":"changed","setting":"device","before":"cpu","now":"ref"}' "$work/out" || fail "no JSON about the change"
run 0 eval parts --json
run 0 infer parts --device cpu

# A run from before there was the setting was on cpu, and is no other than a newer one on cpu.
sed -i '/^device:/d' earlier/config.yaml
run 0 train --resume earlier
grep -q 'changed       device' "$work/out" && fail "a run without a device changed it: $(cat "$work/out")"
[ "$(device earlier)" = cpu ] || fail "an earlier run went on with \"$(device earlier)\""
mkdir both
cp -r earlier both/a && cp -r earlier both/b && sed -i '/^device:/d' both/b/config.yaml
run 0 runs compare both/a both/b
grep -q device "$work/out" && fail "no device and cpu differ: $(cat "$work/out")"
run 0 runs list --dir both --where device=cpu --json
[ "$(grep -o '"run":' "$work/out" | wc -l)" -ge 2 ] || fail "not both runs are on cpu: $(cat "$work/out")"

# One that this machine has not.
run 0 info
if grep -q '^backend cuda  *not usable' "$work/out"; then
    sed -i 's/^device: .*/device: "cuda:1"/' gone/config.yaml
    cp -r gone before
    run 2 train --resume gone
    says err 'the run goes on with device cuda:1, which cannot be used here: '
    says err '--device cpu'
    for command in eval infer; do
        run 2 $command gone
        says err '--device cpu'
    done
    diff -r gone before >/dev/null || fail "a refused resume changed the run"
    run 2 scale linear --ranks 1 --mode weak --device cuda
    [ ! -e studies ] || fail "a refused study was created"
    run 0 train --resume gone --device cpu
    says out 'changed       device: cuda:1 -> cpu'
fi

# A job names it to whoever trains.
run 0 submit "${small[@]}" --device cuda --nodes 1 --ranks-per-node 1 --scheduler pbs
says out 'device=cuda'

[ "$failures" -eq 0 ] && echo "device: $n checks, all as expected"
exit $((failures > 0))
