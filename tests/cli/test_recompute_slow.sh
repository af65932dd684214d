#!/bin/bash
# train.recompute changes no bit of the weights: on several ranks under every strategy, in the reproducible mode, with several
# batches to an update, on a device with memory of its own, in 16 bits; and ranks follow what rank 0 has chosen.
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
enter_work

# weights RANKS TRIAL SETTING...: the hash that a short run ends with
weights() {
    local ranks=$1 trial=$2 folder
    shift 2
    folder=$(mktemp -d "$work/XXXXXX")
    "$LOCKSTEP" train "$trial" -n "$ranks" --bind none --threads 1 --quiet --run-dir "$folder/run" data.kind=synthetic \
        data.train_range=0:64 data.test_range=64:66 train.validate_every=none train.checkpoint_every=none train.steps=3 \
        "$@" >"$work/log" 2>&1 || echo "failed: $(tail -n 3 "$work/log")"
    sed -n 's/.*"weights_xxh3": *"\([0-9a-f]*\)".*/\1/p' "$folder/run/summary.json"
}

# same RANKS TRIAL SETTING...: the same weights with and without recompute
same() {
    local kept again
    n=$((n + 1))
    kept=$(weights "$@" train.recompute=none)
    again=$(weights "$@" train.recompute=unit)
    [ -n "$kept" ] && [ "$kept" = "$again" ] || fail "$*: $kept, and computed again $again"
}

vit=(vit-tiny batch.per_rank=4 parallel.clip_norm=1)
gan=(cosmogan model.size=32 model.width=4 batch.per_rank=2)
for strategy in ddp zero1 fsdp hybrid; do
    same 2 "${vit[@]}" parallel.strategy=$strategy
    same 2 "${gan[@]}" parallel.strategy=$strategy
done
same 2 "${vit[@]}" parallel.strategy=fsdp parallel.reshard=always
same 2 "${vit[@]}" parallel.strategy=fsdp parallel.reshard=never parallel.prefetch=0
same 2 "${gan[@]}" parallel.sync_batchnorm=true
same 1 "${gan[@]}" parallel.accumulate=2
same 2 "${vit[@]}" reproducible=true parallel.shards=4
same 1 aae model.points=32 model.sum_over=8 batch.per_rank=4 reproducible=true parallel.shards=2
same 2 mnist batch.per_rank=4 device=far parallel.strategy=fsdp
same 2 "${vit[@]}" device=far
same 2 "${vit[@]}" precision=bf16

# What fits between everything kept and everything computed again, rank 0 chooses for both.
if $have_json; then
    deep=(vit-tiny model.depth=6 batch.per_rank=8)
    total() {
        "$LOCKSTEP" plan "${deep[@]}" -n 2 "$@" --json --threads 1 | tail -n 1 |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["planned_bytes"]["total"])'
    }
    limit=$((($(total) + $(total train.recompute=unit)) / 2))
    run 0 bench "${deep[@]}" -n 2 --bind none --threads 1 --steps 1 memory.limit=$limit train.recompute=auto --json
    python3 - "$work/out" $limit <<'PYTHON' || fail "auto on two ranks: $(tail -n 1 "$work/out")"
import json, sys
b = json.loads(open(sys.argv[1]).read().splitlines()[-1])
assert b["planned_bytes"] == b["used_bytes"] <= int(sys.argv[2]), (b["planned_bytes"], b["used_bytes"], sys.argv[2])
PYTHON
fi

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
