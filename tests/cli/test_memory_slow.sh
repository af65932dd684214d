#!/bin/bash
# Memory as a promise: train.recompute, memory.limit and the table of `plan --strategy`, as a user meets them.
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
enter_work

small=(vit-tiny model.depth=6 batch.per_rank=8)
quick=(data.kind=synthetic data.train_range=0:64 data.test_range=64:80 train.steps=3 train.validate_every=none)

# total ARGUMENT...: bytes that `plan` says a rank takes
total() {
    "$LOCKSTEP" plan "${small[@]}" "$@" --json --threads 1 | tail -n 1 |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["planned_bytes"]["total"])'
}

# What is computed again, and what it costs.
run 0 plan "${small[@]}" train.recompute=unit
says out "recompute     6 of 6 units, blocks.0 to blocks.5"
says out "more FLOPs"
run 0 plan "${small[@]}"
grep -q '^recompute' "$work/out" && fail "recompute is off, and plan speaks of it"
run 0 plan "${small[@]}" train.recompute=auto
grep -q '^recompute' "$work/out" && fail "without a limit auto means nothing, and plan speaks of it"

# Who keeps weights in pieces does not keep more of all else: constants of the backward pass are not made while the first
# weights are awaited.
run 0 plan vit -n 4 --strategy all --json
python3 - "$work/out" <<'CODE' || fail "sharded ranks plan more activations than replicated ones: $(cat "$work/out")"
import json, sys
of = {r["strategy"]: r["planned_bytes"]["activations"] for r in json.load(open(sys.argv[1]))["rows"]}
sys.exit(not all(of[s] < 1.02 * of["ddp"] for s in ("zero1", "fsdp", "hybrid")))
CODE

# Sizes that are none, and options that contradict one another: exit code 2.
run 2 plan "${small[@]}" memory.limit=lots
says err 'memory.limit: "lots" is no size in bytes'
run 2 plan "${small[@]}" --memory 16XB
says err 'memory.limit: "16XB" is no size in bytes'
run 2 train "${small[@]}" "${quick[@]}" memory.limit=-5GiB
says err 'memory.limit: "-5GiB" is no size in bytes'
[ ! -e runs ] || fail "a run was made although its limit is none"
run 2 plan "${small[@]}" train.recompute=maybe
says err "train.recompute"
for counts in 0 x 4..2 1,,2 1.. 1..2000000 ''; do
    run 2 plan "${small[@]}" -n "$counts"
    says err "expected numbers of ranks from 1"
done
run 2 plan "${small[@]}" --strategy nope
says err "--strategy nope: expected all, or one of: ddp"
# Settings of one strategy have a meaning in a table of all; a table without a single answer is none.
run 0 plan "${small[@]}" -n 4 --strategy all parallel.shard_group=2 parallel.prefetch=2
run 2 plan "${small[@]}" -n 4 --strategy hybrid parallel.shard_group=3
says err "parallel.shard_group=3: 4 ranks do not make up groups of so many"
run 2 plan "${small[@]}" --strategy all --graph "$work/p.svg"
says err "choose one"
run 2 plan "${small[@]}" --out "$work/page"
says err "--out is for the table of memory"
run 2 plan --diff "${small[0]}" vit-tiny --strategy all
says err "choose one"

# A test pass takes the weights, not what an optimiser remembers nor gradients, and no more counts against a limit.
big=(linear model.size=64 model.classes=100 optimizer.name=adam batch.per_rank=8)
run 0 train "${big[@]}" "${quick[@]}" train.steps=1 --run-dir "$work/big"
for way in "ddp 6" "zero1 6" "fsdp 13"; do # weights are 4.7 MiB, and what is gathered lies beside it; in all they would be 19
    run 0 eval "$work/big" -n 2 parallel.strategy="${way% *}" memory.limit="${way#* }MiB"
    run 0 infer "$work/big" -n 2 parallel.strategy="${way% *}" memory.limit="${way#* }MiB"
done
run 0 eval "$work/big" -n 1 memory.limit=6MiB reproducible=true parallel.shards=3
run 2 eval "$work/big" -n 2 memory.limit=1MiB
says err "a rank would take"
! grep -q "gradients\|optimizer\|recompute" "$work/err" || fail "a test has no gradients: $(cat "$work/err")"

needs_python

# A limit that does not fit is refused before anything is made, and what it proposes does fit.
kept=$(total)
again=$(total train.recompute=unit)
[ "$again" -lt "$kept" ] || fail "recompute saves nothing: $again of $kept bytes"
limit=$(((kept + again) / 2))
run 2 bench "${small[@]}" memory.limit=$limit --steps 1 --threads 1
says err "a rank would take"
says err "activations"
says err "what would fit: train.recompute=unit ("
says err "batch.per_rank="
batch=$(grep -o 'batch.per_rank=[0-9]*' "$work/err" | tail -n 1)
run 0 bench "${small[@]}" memory.limit=$limit "$batch" --steps 1 --seconds 0.1 --threads 1
next=$((${batch#*=} + 1))
run 2 bench "${small[@]}" memory.limit=$limit batch.per_rank=$next --steps 1 --threads 1
run 0 bench "${small[@]}" memory.limit=$limit train.recompute=unit --steps 1 --seconds 0.1 --threads 1
run 2 bench "${small[@]}" memory.limit=1000 --steps 1 --threads 1
says err "nothing that was tried fits"
run 2 train "${small[@]}" "${quick[@]}" memory.limit=$limit --threads 1
[ ! -e runs ] || fail "a run was made although it does not fit"
run 0 plan "${small[@]}" memory.limit=$limit --threads 1
says out "it does not fit"
# Its own strategy is no other way.
for strategy in zero1 fsdp hybrid; do
    kept=$(total -n 2 parallel.strategy=$strategy)
    again=$(total -n 2 parallel.strategy=$strategy train.recompute=unit)
    run 2 bench "${small[@]}" -n 2 parallel.strategy=$strategy memory.limit=$(((kept + again) / 2)) --steps 1 --threads 1
    says err "what would fit: train.recompute=unit"
    ! grep -q "parallel.strategy=$strategy" "$work/err" || fail "$strategy instead of itself: $(cat "$work/err")"
done

# auto takes as few units as are needed, and the run stays below the limit with the same bits.
run 0 plan "${small[@]}" memory.limit=$limit train.recompute=auto --threads 1
says out "it fits"
says out "by memory.limit, the fewest FLOPs for a byte first"
chosen=$(sed -n 's/^recompute *\([0-9]*\) of 6 units.*/\1/p' "$work/out")
[ "${chosen:-0}" -gt 0 ] && [ "${chosen:-6}" -lt 6 ] || fail "auto computes ${chosen:-no} of 6 units again"
[ "$(total memory.limit=$limit train.recompute=auto)" -le "$limit" ] || fail "auto does not fit"
# A whole run keeps to it: the short batch at the end of an epoch, validation and test sets that end with short ones, weights in
# pieces and ranks without samples.  Units are computed again, not all of them, and weights have the same bits.
whole=(data.kind=synthetic data.train_range=0:60 data.val_range=60:71 data.test_range=71:85 train.epochs=2)
# weights NAME ARGUMENT...: the hash that a run ends with
weights() {
    local name=$1
    shift
    "$LOCKSTEP" train "${small[@]}" "${whole[@]}" "$@" --run-dir "$work/$name" --quiet --threads 1 2>"$work/err" ||
        fail "train $*: $(cat "$work/err")"
    grep -o '"weights_xxh3": *"[^"]*"' "$work/$name/summary.json"
}
# some NAME LIMIT: the run has computed some units again, and all its plans are below the limit
some() {
    python3 - "$work/$1/summary.json" "$2" <<'CODE' || fail "$1: $(cat "$work/$1/summary.json")"
import json, sys
s = json.load(open(sys.argv[1]))
print(s["recompute"], s["planned_bytes"], "of", sys.argv[2])
sys.exit(not (0 < s["recompute"]["units"] < s["recompute"]["of"] == 6 and s["planned_bytes"] <= int(sys.argv[2])))
CODE
}
a=$(weights kept)
b=$(weights again train.recompute=unit)
c=$(weights auto train.recompute=auto memory.limit=$limit)
[ -n "$a" ] && [ "$a" = "$b" ] && [ "$a" = "$c" ] || fail "recompute changes weights: $a, $b, $c"
some auto $limit
pieces=(-n 2 parallel.strategy=fsdp)
kept=$(total "${pieces[@]}")
again=$(total "${pieces[@]}" train.recompute=unit)
[ "$again" -lt "$kept" ] || fail "recompute saves nothing under fsdp: $again of $kept bytes"
a=$(weights kept-2 "${pieces[@]}" data.train_range=0:57)
c=$(weights auto-2 "${pieces[@]}" data.train_range=0:57 train.recompute=auto memory.limit=$(((kept + again) / 2)))
[ -n "$a" ] && [ "$a" = "$c" ] || fail "recompute changes weights in pieces: $a, $c"
some auto-2 $(((kept + again) / 2))
# In the reproducible mode threads have plans of their own.
shards=(reproducible=true parallel.shards=3 batch.per_rank=24)
kept=$(total "${shards[@]}")
again=$(total "${shards[@]}" train.recompute=unit)
a=$(weights kept-3 "${shards[@]}")
c=$(weights auto-3 "${shards[@]}" train.recompute=auto memory.limit=$(((2 * kept + again) / 3)))
[ -n "$a" ] && [ "$a" = "$c" ] || fail "recompute changes weights in the reproducible mode: $a, $c"
some auto-3 $(((2 * kept + again) / 3))

# The table: a row for every number of ranks and strategy, kinds that add up, the largest batch that fits.
run 0 plan "${small[@]}" -n 1..4,8 --strategy all --memory $limit --threads 1 --json --out "$work/page"
python3 - "$work/out" $limit <<'PYTHON' || fail "the table is wrong"
import json, sys
table = json.loads(open(sys.argv[1]).read().splitlines()[-1])
limit = int(sys.argv[2])
assert table["event"] == "plan-memory" and table["memory_limit"] == limit and table["batch_per_rank"] == 8
assert sorted({r["ranks"] for r in table["rows"]}) == [1, 2, 4, 8], table
assert "ddp" in {r["strategy"] for r in table["rows"]}
for r in table["rows"]:
    if "error" in r:
        continue
    m = r["planned_bytes"]
    assert sum(v for k, v in m.items() if k != "total") == m["total"], r
    assert r["fits"] == (m["total"] <= limit)
    assert (r["largest_batch"] >= 8) == r["fits"], r
    assert (r["largest_width"] >= 64) == r["fits"] and r["largest_width"] % 2 == 0, r
PYTHON
[ -s "$work/page/report.html" ] && [ -s "$work/page/memory.csv" ] && [ -s "$work/page/memory-ranks.svg" ] ||
    fail "no page: $(ls "$work/page" 2>&1)"
run 0 plan "${small[@]}" -n 2,1,2..4 --threads 1 --json
n=$((n + 1))
[ "$(grep -o '"ranks": *[0-9]*' "$work/out" | sort | uniq -d | wc -l)" -eq 0 ] || fail "-n 2,1,2..4 repeats a row: $(cat "$work/out")"
run 0 plan "${small[@]}" -n 1,2 --threads 1
says out "memory of a rank"
says out "; all ranks on one machine; --ranks-per-node R changes that"
[ "$(grep -c ' ddp ' "$work/out")" -eq 2 ] || fail "not a row for each number of ranks: $(cat "$work/out")"

# Machines of two ranks: groups of two, and not of all four.
run 0 plan "${small[@]}" -n 4 --ranks-per-node 2 parallel.strategy=hybrid --threads 1
says out "what optimisers remember in 2 pieces"
run 2 plan "${small[@]}" -n 4 --ranks-per-node 3 parallel.strategy=hybrid --threads 1
says err "4 ranks do not make up machines of 3"
run 0 plan mnist --strategy ddp --memory 16MiB --threads 1
says out "the model has no setting model.width"

# What a rank keeps between steps is its part.
run 0 plan "${small[@]}" --json --threads 1
one=$(field persistent_bytes)
run 0 plan "${small[@]}" -n 4 parallel.strategy=fsdp --json --threads 1
part=$(field persistent_bytes)
[ $((part * 400 / one)) -ge 99 ] && [ $((part * 400 / one)) -le 102 ] || fail "four ranks keep $part bytes each, one $one"

# What matters to training alone does not keep a run from being tested, with a limit as without.
run 0 train linear model.size=4 model.channels=1 model.classes=2 data.kind=synthetic data.train_range=0:16 data.test_range=16:20 \
    batch.per_rank=4 train.steps=2 --run-dir "$work/tested" --quiet
run 0 eval "$work/tested" -n 2 reproducible=true parallel.sync_batchnorm=true --threads 1
run 0 eval "$work/tested" -n 2 reproducible=true parallel.sync_batchnorm=true memory.limit=100MiB --threads 1

# A batch of all ranks is divided by the ranks of each row, as it is for that number alone; and what is proposed can be had.
shared=(vit-tiny model.width=64 model.heads=4 model.mlp=256 model.depth=2 batch.global=16 data.kind=synthetic data.train_range=0:70
    data.test_range=70:90 --threads 1)
run 0 plan "${shared[@]}" -n 4 --strategy ddp --json
totals() {
    python3 -c '
import json, sys
print(*(r["planned_bytes"]["total"] for r in json.loads(open(sys.argv[1]).read().splitlines()[-1])["rows"] if r["ranks"] == 4))' "$work/out"
}
alone=$(totals)
run 0 plan "${shared[@]}" -n 1,2,4,32 --strategy ddp --json
n=$((n + 1))
[ -n "$alone" ] && [ "$(totals)" = "$alone" ] || fail "a row of 4 ranks says $(totals), 4 ranks alone $alone"
says out 'cannot be shared by accumulate 1 x ranks 32'
run 2 train "${shared[@]}" -n 2 train.steps=2 memory.limit=3500KiB --run-dir "$work/shared"
proposed=$(sed -n 's/.*\(batch\.global=[0-9]*\) (.*/\1/p' "$work/err")
n=$((n + 1))
[ -n "$proposed" ] || fail "no batch is proposed: $(cat "$work/err")"
run 0 train "${shared[@]/batch.global=16/$proposed}" -n 2 train.steps=2 memory.limit=3500KiB --run-dir "$work/shared" --quiet
run 0 plan vit-small batch.global=0 batch.per_rank=4 --threads 1

# A checkpoint's copy of all variables (82 MiB here) is made where it fits beside what is planned (110 MiB).  Elsewhere the run waits
# for the write, and says so; the file is the same, and the process takes no more than the limit and what a program takes anyway.
copied=(vit-tiny model.width=384 model.heads=6 model.mlp=1536 model.depth=4 batch.per_rank=2 data.kind=synthetic data.train_range=0:16
    data.test_range=16:20 train.steps=4 train.checkpoint_every=2st --threads 1 --quiet)
run 0 train "${copied[@]}" memory.limit=1GiB --run-dir "$work/copied"
run 0 train "${copied[@]}" memory.limit=128MiB --run-dir "$work/waited"
n=$((n + 4))
grep -qF 'checkpoints are written while the run waits' -r "$work/waited/logs" || fail "a run that writes at once does not say so"
grep -qF 'checkpoints are written while the run waits' -r "$work/copied/logs" && fail "a run that copies says that it waits"
cmp "$work/waited/checkpoints/last/model.safetensors" "$work/copied/checkpoints/last/model.safetensors" || fail "copied and written at once differ"
# A sanitizer takes memory of its own.
slow_build || python3 - "$work/waited/summary.json" "$work/copied/summary.json" <<'CODE' || fail "a checkpoint without a copy takes as much as one with it"
import json, sys
waited, copied = (json.load(open(f))["peak_bytes"] / 2**20 for f in sys.argv[1:])
print(f"most resident, MiB: {waited:.0f} without a copy, {copied:.0f} with it")
sys.exit(not (copied - waited > 70 and waited < 128 + 40))
CODE

# Where the number is given, the heading does not say how it is not.
run 0 plan "${small[@]}" -n 2,4 --ranks-per-node 2 --strategy ddp --threads 1
grep -q 'all ranks on one machine' "$work/out" && fail "two ranks a machine are called one machine: $(head -1 "$work/out")"

# One number stays what it was.
run 0 plan "${small[@]}" -n 2 --threads 1
says out "exchange      2 ranks"

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
