#!/usr/bin/env bash
# The program as a user meets it: commands, texts, JSON, exit codes.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

# --- help and version -----------------------------------------------------------------------------
run 2
says out "Usage: lockstep COMMAND"
run 0 --help
for command in plan bench info; do says out "  $command"; done
run 0 --version
says out "lockstep "
# fits LINES: the last output fits a screen of 80 columns and so many lines.
fits() {
    n=$((n + 1))
    [ "$(wc -l <"$work/out")" -le "$1" ] || fail "the help has $(wc -l <"$work/out") lines: $(head -1 "$work/out")"
    grep -qE '^.{81}|[[:space:]]$' "$work/out" && fail "too wide, or blanks at the end: $(grep -E '^.{81}|[[:space:]]$' "$work/out" | head -1)"
}

run 0 --help
fits 40
commands=$(sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p' "$work/out")
[ "$(wc -w <<<"$commands")" -ge 7 ] || fail "not all commands are listed: $commands"
for command in $commands; do
    run 0 "$command" --help
    says out "Usage: lockstep $command"
    says out "--json"
    fits 40
done
run 0 train --help
says out "lockstep train --help settings"
run 0 train --help settings
for key in train.on_nonfinite optimizer.lr model.cifar_stem "Model resnet18:"; do says out "$key"; done
fits 400
run 0 data --help settings
says out "Usage: lockstep data"

# --- bad command lines: exit code 2 and the nearest name ------------------------------------------
run 2 bensh
says err 'did you mean "bench"'
run 2 bench
says err "which model?"
run 2 bench mnits
says err 'did you mean "mnist"'
run 2 bench mnist --jsn
says err 'did you mean "--json"'
run 2 bench mnist --steps
says err "--steps needs a value"
run 2 bench mnist --steps=zero
says err "no positive number"
run 2 bench mnist --threads 1.5
says err "no whole number"
run 2 bench mnist --threads 1000000
says err "--threads 1000000"
run 2 bench mnist --json=yes
says err "takes no value"
run 2 bench mnist optimizer.lrr=1
says err 'did you mean "optimizer.lr"'
run 2 plan mnist batch.per_rank=0
says err "batch.per_rank: 0 is outside"
run 2 plan mnist batch.per_rank
says err "key=value"
run 2 plan mnist optimizer.momentum=much
says err "is no number"
run 2 plan mnist optimizer.name=sdg
says err "sgd adam"
run 2 plan vit-tiny model.heads=3
says err ".heads (3) must divide the width 64"
says err "src/trials/vit.c:"
run 2 plan mnist --device abacus
says err 'no device "abacus"'
run 2 info mnist
says err "one word too many"

# --- plan -----------------------------------------------------------------------------------------
run 0 plan mnist --settings
says out "batch.per_rank           64"
says out "optimizer.momentum       0.5"
run 0 plan mnist
for part in conv2d_dw fc2 64x10x24x24 "21,840 in 8 tensors" "plan hash"; do says out "$part"; done
run 0 plan cosmogan model.size=32 batch.per_rank=2 --device ref --json
is event plan buckets "[]"
holds 'o["parameters"]["D"] > 0 and o["parameters"]["G"] + o["parameters"]["D"] == o["parameters"]["total"]' \
    'o["planned_bytes"]["total"] == sum(v for k, v in o["planned_bytes"].items() if k != "total")' \
    'set(o["planned_bytes"]) == {"weights", "gradients", "optimizer", "activations", "scratch", "comm", "total"}' \
    'len(o["plan_hash"]) == 16 and o["flops_per_sample"] > 0'
run 0 plan mnist --json
is parameters.model 21840
first=$(field plan_hash)
holds 'abs(o["flops_per_sample"] - 2.595e6) < 0.01e6'
run 0 plan mnist --json --device ref --threads 1
! $have_json || [ "$(field plan_hash)" = "$first" ] || fail "the plan's hash depends on the device"
run 0 plan mnist --json batch.per_rank=32
! $have_json || [ "$(field plan_hash)" != "$first" ] || fail "the plan's hash does not depend on the batch"

# --- bench ----------------------------------------------------------------------------------------
run 0 bench wgan-gp --steps 4 --threads 1 --json
keys=()
for key in event experiment device ranks threads batch_per_rank steps step_s samples_per_s comm_exposed_s data_wait_s \
    flops_per_sample flop_s peak_share planned_bytes used_bytes allocs_per_step; do
    keys+=("'$key' in o")
done
holds "${keys[@]}"
is event bench experiment wgan-gp steps 4 threads 1 batch_per_rank 32 allocs_per_step 0.0
holds 'o["planned_bytes"] == o["used_bytes"]' \
    '0 < o["step_s"]["p16"] <= o["step_s"]["p50"] <= o["step_s"]["p84"]' \
    'o["samples_per_s"]["p16"] <= o["samples_per_s"]["p50"] <= o["samples_per_s"]["p84"]' \
    'abs(o["samples_per_s"]["p50"] * o["step_s"]["p50"] / 32 - 1) < 1e-6' \
    'o["warmup_steps"] >= 3'
run 0 bench wgan-gp optimizer.lr=0.001 batch.per_rank=8 --seconds 0.1 --threads 1 --profile
for part in "samples/s" "matmul" "slowest nodes" "allocations   0 per step" "loss_d"; do says out "$part"; done
n=$((n + 1))
[ -s "$work/err" ] && fail "bench wrote to standard error: $(cat "$work/err")"

# --- experiments: files, shipped files, overrides ---------------------------------------------------
printf 'defaults: [base.yaml]\nname: mine\noptimizer: {lr: 0.125}\n' >"$work/mine.yaml"
printf 'model: {trial: mnist}\nbatch: {global: 16}\n' >"$work/base.yaml"
run 0 plan "$work/mine.yaml" --settings
says out "optimizer.lr             0.125"
says out "batch.per_rank           16"
run 0 plan "$work/mine.yaml" optimizer.lr=0.5 batch.per_rank=8 --json
is experiment mine batch_per_rank 8
run 0 plan fashion --settings
says out "data.kind                idx"
export LOCKSTEP_EXPERIMENTS=$work
run 0 plan mine --json
unset LOCKSTEP_EXPERIMENTS
is experiment mine
printf 'model: {trial: mnist}\noptimizer:\n  lrr: 0.1\n' >"$work/bad.yaml"
run 2 plan "$work/bad.yaml"
says err "bad.yaml:3:3: unknown key \"optimizer.lrr\"; did you mean \"optimizer.lr\"?"
run 2 bench "$work/none.yaml"
says err "none.yaml: No such file or directory"
run 0 plan "$work/mine.yaml" ranks=2 --json
is ranks 2 batch_per_rank 8

# --- info -----------------------------------------------------------------------------------------
run 0 info
for part in "backend cpu" "backend ref" jansson " fashion" " mnist-10k" "  mnist-keras "; do says out "$part"; done
run 0 info --json
is event info
holds '"fashion" in o["experiments"] and o["experiments"] == sorted(set(o["experiments"]))' \
    '[b["name"] for b in o["backends"]] == ["cpu", "cuda", "ref"] and all(b["usable"] or b["name"] == "cuda" for b in o["backends"])'

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
