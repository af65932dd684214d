#!/usr/bin/env bash
# `lockstep submit` with a real Slurm of three nodes on this machine: a job runs to its end and is followed, is cancelled with
# a checkpoint, and goes on by itself after its time; and a study over node counts is jobs and one report.
set -uo pipefail
. tests/cli/cli_lib.sh
[ -e "$LS_BUILD_DIR/lockstep-mpi.so" ] || { echo "skipped: module mpi is not in this build" && exit 77; }
tests/tools/slurm_here.sh start "$work/slurm" 3 2 >"$work/out" 2>&1
case $? in
0) ;;
77) echo "skipped: $(tail -1 "$work/out")" && exit 77 ;;
*) cat "$work/out" && exit 1 ;;
esac
trap 'tests/tools/slurm_here.sh stop "$work/slurm"; rm -rf "$work"' EXIT
export SLURM_CONF=$work/slurm/slurm.conf

# wait_for SECONDS COMMAND...: until it is true
wait_for() {
    local end=$((SECONDS + $1))
    shift
    n=$((n + 1))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || { fail "never true: $*" && return 1; }
        sleep 0.05
    done
}
# steps RUN: it has reported some
steps() {
    [ -s "$work/$1/metrics.jsonl" ]
}
# is_in JOB STATE
is_in() {
    [ "$(squeue --noheader --states=all --jobs="$1" --format=%T 2>/dev/null)" = "$2" ]
}
# begin RUN NODES: a job that trains for long; its number is left in $job
begin() {
    run 0 submit mnist data.kind=synthetic train.epochs=100000 --nodes "$2" --ranks-per-node 2 --run-dir "$work/$1" --no-follow
    job=$(sed -n 's/^job  *\([0-9]*\),.*/\1/p' "$work/out")
}
# stopped RUN: it ended with a checkpoint that is whole
stopped() {
    run 0 ckpt verify "$work/$1"
    n=$((n + 1))
    grep -q '"state": "paused"' "$work/$1/summary.json" || fail "$1: $(head -3 "$work/$1/summary.json")"
}
# says_log RUN TEXT
says_log() {
    n=$((n + 1))
    grep -qF -- "$2" "$work/$1/job.log" || fail "the log of $1 lacks \"$2\": $(tail -5 "$work/$1/job.log")"
}

run 2 submit mnist --nodes 64 --ranks-per-node 2
says err 'partition "main" has 3 nodes'

run 2 scale mnist data.kind=synthetic --nodes 1,64 --ranks-per-node 1 --mode weak --dir "$work/study"
says err 'partition "main" has 3 nodes'

# -- one job is told that its time is over; it waits in the queue during what follows
begin again 1
again=$job
if wait_for 60 steps again; then
    scancel --batch --signal=USR1 "$again" # what Slurm sends before the limit
    wait_for 60 is_in "$again" PENDING
    stopped again
fi

# -- two nodes of two ranks each, to the end
run 0 submit mnist data.kind=synthetic train.steps=20 --nodes 2 --ranks-per-node 2 --run-dir "$work/it's done" --follow
says out "running       on node["
says out "ranks         4 by srun on 2 machines, 1 thread each"
says out "20 steps"
says out "ended         COMPLETED, exit code 0"
run 0 ckpt verify "$work/it's done"

# -- cancelled by us, and by Slurm's own command
begin ours 1
wait_for 60 steps ours
ours=$job
begin theirs 1
wait_for 60 steps theirs
scancel "$job"
run 75 submit --cancel "$ours" --follow
says out "ended         FAILED, exit code 75"
stopped ours
run 75 submit --follow="$job"
says out "ended         CANCELLED, exit code 75"
stopped theirs

# -- the first goes on where it was
wait_for 60 is_in "$again" RUNNING
wait_for 60 grep -q "^from  *step" "$work/again/job.log"
run 75 submit --cancel "$again" --follow
says_log again ", continued"
stopped again

# -- a study over node counts: a job per point, one report
run 0 scale mnist data.kind=synthetic --nodes 1,3 --ranks-per-node 1 --mode weak --repeats 1 --steps 5 --dir "$work/a study"
says out "jobs          2, which run one after another"
says out "[2/2] 3 nodes, repeat 1: "
says out "on Slurm partition main (2 cores)"
for file in report.html table.md points/nodes-0001-repeat-01.json points/nodes-0003-repeat-01.json; do
    n=$((n + 1))
    [ -s "$work/a study/$file" ] || fail "the study has no $file"
done
grep -q '"ranks": *3' "$work/a study/points/nodes-0003-repeat-01.json" || fail "three nodes were not three ranks"
# All nodes are this machine: what its cores cannot hold is no scaling, whatever the nodes are called.
n=$((n + 1))
marked=$(grep -c "no scaling" "$work/a study/table.md")
[ "$marked" = "$(($(nproc) < 3))" ] || fail "3 ranks on $(nproc) cores: $marked points are marked as oversubscribed"
# A point that is lost is measured again, the other is not.
rm "$work/a study/points/nodes-0001-repeat-01.json"
kept=$(stat -c %Y.%i "$work/a study/points/nodes-0003-repeat-01.json")
run 0 scale mnist data.kind=synthetic --nodes 1,3 --ranks-per-node 1 --mode weak --repeats 1 --steps 5 --dir "$work/a study"
says out "jobs          1,"
says out "measured before"
n=$((n + 1))
[ "$kept" = "$(stat -c %Y.%i "$work/a study/points/nodes-0003-repeat-01.json")" ] || fail "a point that was there was written again"

# -- a study that trains: its job is warned before its time is over, writes a checkpoint, waits in the queue and goes on
study=$work/trained run=$work/trained/runs/nodes-0001-repeat-01
"$LOCKSTEP" scale mnist data.kind=synthetic train.epochs=100000 --nodes 1 --ranks-per-node 1 --mode weak --repeats 1 --train \
    --time 1 --mem 1M --slurm --comment=study --setup 'echo set up' --dir "$study" >"$work/out" 2>"$work/err" &
scale=$!
resumed() { # or there is nothing to wait for
    grep -qs " from  *step [0-9]" "$run"/logs/rank-00000.log || ! kill -0 "$scale"
}
if wait_for 240 resumed; then
    job=$(cat "$study/logs/nodes-0001-repeat-01.job")
    scontrol --oneliner show job "$job" >"$work/job"
    for text in "Restarts=1" "Requeue=1" "Comment=study" "TimeLimit=00:01:00"; do
        n=$((n + 1))
        grep -q "$text" "$work/job" || fail "the job of the study lacks $text: $(cat "$work/job")"
    done
    [ "$(grep -c "^set up" "$study/logs/nodes-0001-repeat-01.log")" -eq 2 ] || fail "the set-up did not run before each start"
fi
kill -INT "$scale" # the study ends, and its job with a checkpoint
wait "$scale"
code=$?
n=$((n + 1))
[ "$code" -eq 75 ] || fail "the study that was interrupted: exit code $code: $(cat "$work/err")"
stopped trained/runs/nodes-0001-repeat-01

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
