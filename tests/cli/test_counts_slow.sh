#!/usr/bin/env bash
# What `lockstep plan` prints about the models: parameters exactly, FLOPs of a training step per sample within 1 %.
# Of classifiers FLOPs are 2 per multiply-add of the forward pass, twice as many in the backward pass, less the gradient of the first layer's
# input, which nobody needs.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
$have_json || {
    echo "skipped: nothing here reads JSON"
    exit 77
}

# thousands NUMBER: 1234567 as 1,234,567
thousands() {
    sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta' <<<"$1"
}

# counts MODEL PARAMETERS TENSORS MULTIPLY-ADDS FIRST: of the forward pass, and of its first layer
counts() {
    run 0 plan "$1" batch.per_rank=1 --json
    is parameters.total "$2"
    holds "o['parameters'] == {'model': $2, 'total': $2}"
    holds "abs(o['flops_per_sample'] / (6 * $4 - 2 * $5) - 1) < 0.01"
    run 0 plan "$1" batch.per_rank=1
    says out "parameters    $(thousands "$2") in $3 tensors"
}

counts mnist 21840 8 480500 144000
counts mnist-keras 1199882 8 11992448 194688
counts linear 30730 2 30720 30720
counts resnet18 11181642 62 1813.6e6 118.0e6
counts resnet18-cifar 11181642 62 37.0e6 2.408e6
counts resnet18-cifar-stem 11173962 62 555.4e6 1.769e6
counts vit 85806346 152 17.56e9 0.1156e9
counts vit-b32 87462922 152 4.41e9 0.1156e9
# One block of ViT-B: what an added one brings.
run 0 plan vit model.depth=1 batch.per_rank=1 --json
one=$(field parameters.total) work_one=$(field flops_per_sample)
run 0 plan vit model.depth=2 batch.per_rank=1 --json
holds "o['parameters']['total'] - $one == 7087872" \
    "abs((o['flops_per_sample'] - $work_one) / (6 * 1.454e9) - 1) < 0.01"
# Models with several networks and losses: as their specifications count them.
run 0 plan aae-longhorn --json
is parameters.E 502272 parameters.G 10981965 parameters.D 369921
holds 'abs(o["flops_per_sample"] / 6.96e9 - 1) < 0.01'
holds 'o["planned_bytes"]["total"] < 32 * 3375 * 3375 * 4' # not even one matrix of distances is kept
run 0 plan cosmogan-bench --json
is parameters.G 12824449 parameters.D 3583873
holds 'abs(o["flops_per_sample"] / 47.85e9 - 1) < 0.01'
run 0 plan cyclegan-1 --json
for net in G_AB G_BA; do is parameters.$net 11378179; done
for net in D_A D_B; do is parameters.$net 2764737; done
is parameters.total 28285832
holds 'abs(o["flops_per_sample"] / 2092.7e9 - 1) < 0.01'

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
