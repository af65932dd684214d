#!/usr/bin/env bash
# memory_table.sh PROGRAM: what a rank of ViT-B takes, as `plan` says it and as `bench` finds it in use, on 1, 2, 4 and 8 ranks
# under every strategy, with and without train.recompute=unit; as a table for docs/memory.md.
#
# Each row is one step on synthetic images.  RANKS="1 2", SIZE=64 (of images), BATCH=2 (of a rank): others than the usual
# (1 2 4 8, 64, 2); JOBS=4: so many rows at once (1).  Eight ranks need some 8 GB of memory.
# Exit status: 0, 1 where a row takes other than planned bytes, or where what a rank keeps between steps does not fall with the
# number of ranks as it must (within 2 %: of all variables under fsdp, of what optimisers remember under zero1), 2 a mistake.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
export LOCKSTEP_TUNE=off OMP_NUM_THREADS=1 program=$1
rows=$(mktemp -d)
export rows
trap 'rm -rf "$rows"' EXIT

# row RANKS STRATEGY RECOMPUTE: a line of what plan and bench say, for the table
row() {
    local settings=(vit model.size="${SIZE:-64}" batch.per_rank="${BATCH:-2}" -n "$1" --threads 1 train.recompute="$3")
    settings+=(parallel.strategy="$2")
    # How far ahead weights are gathered is measured otherwise, and `plan` measures nothing.
    case $2 in fsdp | hybrid) settings+=(parallel.prefetch=1) ;; esac
    # Groups of half of the ranks: all of them would be fsdp.
    [ "$2" != hybrid ] || settings+=(parallel.shard_group=$(($1 > 2 ? $1 / 2 : $1)))
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$("$program" plan "${settings[@]}" --json | tail -n 1)" \
        "$("$program" bench "${settings[@]}" --json --steps 1 --seconds 0.01 | tail -n 1)" >"$rows/$1 $2 $3"
}
export -f row

for ranks in ${RANKS:-1 2 4 8}; do
    for strategy in ddp zero1 fsdp hybrid; do
        [ "$ranks" -gt 1 ] || [ $strategy = ddp ] || continue
        printf '%s\n' "$ranks $strategy none" "$ranks $strategy unit"
    done
done | xargs -P "${JOBS:-1}" -L 1 bash -c 'row "$@"' row
python3 - "$rows" <<'CODE'
import json, os, sys

bad, one = [], None
order = ["ddp", "zero1", "fsdp", "hybrid"]
rows = [open(os.path.join(sys.argv[1], f)).read().rstrip("\n").split("\t") for f in os.listdir(sys.argv[1])]
print("| ranks | strategy | recompute | weights | gradients | optimizer | activations | workspace | exchange | planned | used |")
print("|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
for ranks, strategy, recompute, plan, bench in sorted(rows, key=lambda r: (int(r[0]), order.index(r[1]), r[2])):
    ranks, plan, bench = int(ranks), json.loads(plan), json.loads(bench)
    m, planned, used = plan["planned_bytes"], bench["planned_bytes"], bench["used_bytes"]
    kinds = [m[k] for k in ("weights", "gradients", "optimizer", "activations", "scratch", "comm")]
    print(f"| {ranks} | {strategy} | {recompute} | " + " | ".join(f"{x / 2**20:,.1f}" for x in kinds) +
          f" | {m['total']:,} | {used:,} |")
    where = f"{ranks} ranks, {strategy}, recompute {recompute}"
    if not m["total"] == planned == used:
        bad.append(f"{where}: plan says {m['total']}, bench {planned}, and {used} are in use")
    kept = {"zero1": m["optimizer"], "fsdp": plan["persistent_bytes"]}.get(strategy)
    if ranks == 1:
        one = {"zero1": m["optimizer"], "fsdp": plan["persistent_bytes"]}
    elif one is not None and kept is not None:
        share = kept * ranks / one[strategy]
        print(f"{where}: {kept:,} bytes kept between steps, {share:.4f} of an N-th part", file=sys.stderr)
        if abs(share - 1) > 0.02:
            bad.append(f"{where}: that is wrong")
print("(kinds in MiB; planned and used in bytes)")
print("\n".join(bad) or "all as planned", file=sys.stderr)
sys.exit(1 if bad else 0)
CODE
