#!/usr/bin/env bash
# train.freeze: what it names keeps its bits, whatever the optimiser; the rest moves as it would have done; nothing is
# computed, kept or exchanged for it.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
needs_python
enter_work
common=(data.kind=synthetic data.train_range=0:64 data.test_range=64:96 batch.per_rank=16 --quiet)
# weights NAME SETTING...: of a run with these settings, as NAME.safetensors
weights() {
    local name=$1
    shift
    run 0 train mnist "${common[@]}" "$@" --run-dir "$name"
    run 0 ckpt export "$name" "$name.safetensors"
}

weights start train.steps=1 optimizer.lr=0
for o in sgd adam rmsprop lars lamb; do
    weights "$o" train.steps=3 optimizer.name=$o optimizer.weight_decay=0.1 "train.freeze=conv*,*.bias"
    for g in 'conv?.*' '*.bias'; do tensors same start.safetensors "$o.safetensors" "$g"; done
    tensors differ start.safetensors "$o.safetensors" 'fc?.weight'
done

# One step: gradients do not depend on who else is trained, so the rest has the bits of a step that trains all.
weights all train.steps=1
weights part train.steps=1 "train.freeze=conv1.*,fc1.bias"
tensors same all.safetensors part.safetensors 'conv2.*'
tensors same all.safetensors part.safetensors 'fc1.weight'
tensors same all.safetensors part.safetensors 'fc2.*'
tensors same start.safetensors part.safetensors 'conv1.*'
tensors same start.safetensors part.safetensors 'fc1.bias'

# The same in every mode of training.
weights accumulated train.steps=2 batch.per_rank=8 parallel.accumulate=2 "train.freeze=conv1.*"
weights shards1 train.steps=2 reproducible=true "train.freeze=conv1.*"
weights shards2 train.steps=2 reproducible=true batch.per_rank=8 "train.freeze=conv1.*" -n 2
weights ranks train.steps=2 batch.per_rank=8 parallel.share=always "train.freeze=conv1.*" -n 2
for r in accumulated shards1 shards2 ranks; do
    tensors same start.safetensors $r.safetensors 'conv1.*'
    tensors differ start.safetensors $r.safetensors 'fc?.*'
done
[ "$(hash shards1)" = "$(hash shards2)" ] || fail "reproducible=true gives other bits on two ranks with train.freeze"

# No gradient, no optimiser state, no bytes for it.
run 0 ckpt show part
says out 'conv2.weight.sgd.momentum'
grep -qF 'conv1.weight.sgd.momentum' "$work/out" && fail "a frozen parameter has optimiser state"
run 0 plan mnist -n 2 --json
mnist=$(field flops_per_sample)
is trained 21840 frozen 0
run 0 plan mnist -n 2 --json "train.freeze=conv?.*,fc1.*"
is trained 510 frozen 21330 parameters.total 21840
holds "o['flops_per_sample'] < 0.5 * $mnist" 'sum(o["buckets"]) < 4096'
run 0 plan mnist "train.freeze=conv?.*,fc1.*"
says out '510 of them; 21,330 are frozen'

# Two networks: the critic of the AAE stands still, the rest is trained, in stages as well.
aae=(data.kind=synthetic model.points=64 batch.per_rank=4 data.train_range=0:16 data.test_range=16:24 --quiet)
run 0 train aae "${aae[@]}" train.steps=1 optimizer.lr=0 --run-dir aae0
run 0 train aae "${aae[@]}" train.steps=2 "train.freeze=D.*" --run-dir aae1
run 0 train aae "${aae[@]}" train.steps=2 "train.freeze=D.*" parallel.accumulate=2 --run-dir aae2
for k in 0 1 2; do run 0 ckpt export aae$k aae$k.safetensors; done
tensors same aae0.safetensors aae1.safetensors 'D.*'
tensors same aae0.safetensors aae2.safetensors 'D.*'
tensors differ aae0.safetensors aae1.safetensors 'G.*.weight'

# A pattern that means nothing is an error.
run 2 train mnist "${common[@]}" "train.freeze=conv3.*" --run-dir odd
says err 'train.freeze: nothing matches "conv3.*"; there are "conv1.weight"'
run 2 train mnist "${common[@]}" "train.freeze=fc2.bais" --run-dir odd
says err 'did you mean "fc2.bias"?'
run 2 plan mnist "train.freeze=*"
says err 'leaves no parameter to be trained'
[ ! -e odd ] || fail "a run that was refused has a directory"

[ $failures -eq 0 ] && echo "test_freeze: $n checks passed"
exit $((failures > 0))
