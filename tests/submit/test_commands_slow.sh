#!/usr/bin/env bash
# `lockstep submit` with stand-ins for Slurm's commands: what is refused, what is submitted, and what the script does when
# its ranks end or a signal comes.
set -uo pipefail
. tests/cli/cli_lib.sh
mkdir "$work/bin" "$work/here" "$work/none"
export work

# stand_in NAME: a command, from standard input
stand_in() {
    { echo '#!/bin/bash'; cat; } >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
stand_in sinfo <<'E'
cat "$work/sinfo"
E
stand_in sbatch <<'E'
[ ! -e "$work/refuse" ] || { echo "sbatch: error: you may not" >&2; exit 1; }
cat >"$work/submitted"
echo 42
E
# Line by line what a job comes to; the last one for ever.
stand_in scontrol <<'E'
[ "$1" != requeue ] || { echo "$*" >>"$work/calls"; exit 0; }
n=$(($(cat "$work/asked" 2>/dev/null || echo 0) + 1))
echo $n >"$work/asked"
lines=$(wc -l <"$work/job")
sed -n "$((n < lines ? n : lines))p" "$work/job"
E
stand_in scancel <<'E'
echo "$*" >>"$work/calls"
E
# Ends with the code it is told, or waits for a signal: to say which, or to be ended by it.
stand_in srun <<'E'
[ "$1" != --mpi=list ] || exit 0
while [[ $1 == --* ]]; do shift; done
shift
printf '%s\n' "$@" >"$work/words"
[[ "$(cat "$work/behave")" = [dw]* ]] || exit "$(cat "$work/behave")"
[ "$(cat "$work/behave")" = wait ] || { : >"$work/ready" && exec sleep 1000; }
trap 'echo USR1 >>"$work/signals"; exit 75' USR1
trap 'echo TERM >>"$work/signals"; exit 75' TERM
: >"$work/ready"
while [ ! -e "$work/leave" ]; do sleep 0.02; done
exit 75
E
lockstep=$LOCKSTEP
LOCKSTEP() { (cd "$work/here" && PATH=$path "$lockstep" "$@"); }
LOCKSTEP=LOCKSTEP
path=$work/bin:$PATH
echo 'main*|up|4|2|1-00:00:00|1-infinite' >"$work/sinfo"
submit() {
    local code=$1
    shift
    run "$code" submit mnist data.kind=synthetic "$@"
}

# -- refusals: exit code 2, and nothing is made
submit 2 --ranks-per-node 2
says err "--nodes N"
submit 2 --nodes 2
says err "--ranks-per-node"
submit 2 --nodes 64 --ranks-per-node 2
says err 'partition "main" has 4 nodes'
submit 2 --nodes 2 --ranks-per-node 4
says err "4 ranks x 1 thread need 4 CPUs"
submit 2 --nodes 2 --ranks-per-node 2 --time 2-00:00:00
says err 'above the limit of partition "main", 1-00:00:00'
submit 2 --nodes 2 --ranks-per-node 2 --time soon
says err "--time soon"
submit 2 --nodes 2 --ranks-per-node 2 --partition gpu
says err "there are: main (4 nodes of 2 CPUs)"
submit 2 --nodes 2 --ranks-per-node 2 --job-name 'a;b'
says err "--job-name"
submit 2 --nodes 2 --ranks-per-node 2 --scheduler lsf
says err "slurm or pbs"
submit 2 --nodes 2 --ranks-per-node 2 optimizer.lrr=1
says err "optimizer.lr"
submit 2 --nodes 4 --ranks-per-node 2 batch.global=3
says err "batch.global"
path=$work/none
submit 2 --nodes 2 --ranks-per-node 2
says err "--dry-run"
run 2 submit --cancel 42
path=$work/bin:$PATH
run 2 submit --cancel 'x;y'
says err "no job of Slurm"
: >"$work/refuse"
submit 2 --nodes 2 --ranks-per-node 2 --run-dir refused
says err "you may not"
rm "$work/refuse"

# -- a study over node counts, likewise
study() {
    run 2 scale mnist data.kind=synthetic --mode weak "$@"
}
study --nodes 1,64 --ranks-per-node 1
says err '--nodes 64: partition "main" has 4 nodes'
study --nodes 1,2
says err "--ranks-per-node R"
study --nodes 1,2 --ranks-per-node 1 --ranks 1,2
says err "leave one of them out"
study --ranks 1,2 --partition main
says err "--nodes 1,2,4"
study --nodes 1,2 --ranks-per-node 3
says err "need 3 CPUs"
study --nodes 1,2 --ranks-per-node 1 --time 2-0
says err "above the limit"
path=$work/none
study --nodes 1,2 --ranks-per-node 1
says err "Slurm is not on this machine"
path=$work/bin:$PATH

# -- dry runs: exit code 0, and nothing is made
submit 0 --nodes 2 --ranks-per-node 2 --dry-run
says out "#SBATCH --nodes=2"
submit 0 --nodes 2 --ranks-per-node 2 --scheduler pbs
says out "#PBS -l select=2:ncpus=2:mpiprocs=2:ompthreads=1"
path=$work/none
submit 0 --nodes 64 --ranks-per-node 2 --dry-run
says err "not compared with a cluster"
path=$work/bin:$PATH
n=$((n + 1))
[ -z "$(ls "$work/here")" ] || fail "something was made: $(ls "$work/here")"

# -- a script, and what its ranks get
words="data.path=it's \$(touch $work/broken) \`touch $work/broken\` \"#"
submit 0 --nodes 2 --ranks-per-node 2 "$words" --run-dir "a run's" --no-follow
says out "job           42, 2 x 2 ranks with 1 thread each"
says out "lockstep submit --cancel 42"
dir="$work/here/a run's"
n=$((n + 1))
cmp -s "$work/submitted" "$dir/job.sh" || fail "job.sh is not what was submitted"

# script CODE: the submitted script ends so
script() {
    local got
    n=$((n + 1))
    PATH=$path SLURM_JOB_ID=42 bash "$work/submitted" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$1" ] || fail "the script ends with $got, not $1: $(cat "$work/err")"
}
# calls TEXT: what went to scontrol and scancel
calls() {
    n=$((n + 1))
    [ "$(cat "$work/calls" 2>/dev/null)" = "$1" ] || fail "called \"$(cat "$work/calls")\", not \"$1\""
    rm -f "$work/calls"
}
echo 0 >"$work/behave"
script 0
n=$((n + 1))
diff <(printf '%s\n' train mnist data.kind=synthetic "$words" --threads 1 --run-dir "$dir") "$work/words" >"$work/err" ||
    fail "the ranks get other words: $(cat "$work/err")"
[ ! -e "$work/broken" ] || fail "a setting was run as a command"
echo 3 >"$work/behave"
script 3
echo 137 >"$work/behave"
script 4
echo 75 >"$work/behave"
script 75
calls ""
mkdir -p "$dir"
: >"$dir/config.yaml"
echo 0 >"$work/behave"
script 0
n=$((n + 1))
[ "$(tail -1 "$work/words")" = "--resume=$dir" ] || fail "a later start gets $(tail -1 "$work/words")"

# -- what is passed on to Slurm, and what runs before the ranks
submit 2 --nodes 1 --ranks-per-node 1 --mem lots
says err '--mem "lots"'
submit 2 --nodes 1 --ranks-per-node 1 --slurm --output=x
says err "the script sets that itself"
submit 2 --nodes 1 --ranks-per-node 1 --scheduler pbs --qos high
says err "--qos, --constraint and --slurm are Slurm's"
study --ranks 1,2 --setup 'module load x'
says err "say --nodes 1,2,4"
submit 0 --nodes 1 --ranks-per-node 1 --run-dir ready --mem 1G --qos high --constraint 'a&b' --slurm --gres=gpu:1 --slurm --exclusive \
    --setup 'export SEEN=yes' --setup "echo \"\$SEEN\" >$work/seen" --no-follow
for line in --mem=1G --qos=high "--constraint='a&b'" "--gres='gpu:1'" --exclusive; do
    n=$((n + 1))
    grep -qxF -- "#SBATCH $line" "$work/submitted" || fail "the script lacks $line: $(head -20 "$work/submitted")"
done
echo 0 >"$work/behave"
script 0
n=$((n + 1))
[ "$(cat "$work/seen")" = yes ] || fail "the set-up did not run before the ranks"
submit 0 --nodes 1 --ranks-per-node 1 --run-dir unready --setup "test -e $work/nothing" --setup "touch $work/broken" --no-follow
script 1
says err "this line of the set-up failed: test -e $work/nothing"
[ ! -e "$work/broken" ] || fail "the set-up went on after a line that failed"

# -- a study that trains is jobs that train: warned, put back, resumed
echo 'JobId=42 JobState=FAILED ExitCode=1:0 StdOut=/x' >"$work/job"
run 1 scale mnist data.kind=synthetic train.steps=5 --nodes 1 --ranks-per-node 1 --mode weak --repeats 1 --train --time 1:00:00 --mem 1G --dir trained
for line in "#SBATCH --signal=B:USR1@60" "#SBATCH --requeue" "#SBATCH --mem=1G" "run=$work/here/trained/runs/nodes-0001-repeat-01"; do
    n=$((n + 1))
    grep -qxF -- "$line" "$work/submitted" || fail "the script of a point that trains lacks $line: $(cat "$work/submitted")"
done
script 0
n=$((n + 1))
[ "$(tail -2 "$work/words" | tr '\n' ' ')" = "--run-dir $work/here/trained/runs/nodes-0001-repeat-01 " ] || fail "the ranks get $(tail -2 "$work/words")"
rm -f "$work/asked" "$work/job"

# -- PBS: the log has a folder, whoever submits the script
stand_in mpirun <<'E'
while [ "$1" != "$lockstep" ]; do shift; done
echo "ranks of $2"
E
submit 0 --nodes 1 --ranks-per-node 1 --scheduler pbs --run-dir "new/pbs run"
n=$((n + 1))
lockstep=$lockstep PATH=$path PBS_NODEFILE=/dev/null bash "$work/out" 2>"$work/err" || fail "the PBS script ends with $?: $(cat "$work/err")"
[ "$(cat "$work/here/new/pbs run/job.log")" = "ranks of train" ] || fail "PBS: the log is not there: $(cat "$work/err")"
rm -r "$work/here/new"

# signal NAME [leave]: the script gets this signal while its ranks run; $work/signals is what they then get
signal() {
    local pid got
    rm -f "$work/ready" "$work/signals" "$work/leave"
    PATH=$path SLURM_JOB_ID=42 bash "$work/submitted" >"$work/out" 2>"$work/err" &
    pid=$!
    while [ ! -e "$work/ready" ]; do sleep 0.02; done
    kill "-$1" "$pid"
    [ $# -lt 2 ] || : >"$work/leave"
    wait "$pid"
    got=$?
    n=$((n + 1))
    [ "$got" -eq 75 ] || fail "after $1 the script ends with $got, not 75: $(cat "$work/err")"
}
# ranks_got TEXT
ranks_got() {
    n=$((n + 1))
    [ "$(cat "$work/signals" 2>/dev/null)" = "$1" ] || fail "the ranks got \"$(cat "$work/signals")\", not \"$1\""
}
echo wait >"$work/behave"
signal USR1
ranks_got USR1
calls "requeue 42"
signal USR2
ranks_got USR1
calls ""
signal TERM leave
ranks_got ""
calls ""
echo deaf >"$work/behave" # told before they listen
signal USR1
calls "requeue 42"
signal USR2
calls ""

# -- following, cancelling
state() {
    echo "JobId=42 JobState=$1 Reason=$2 Restarts=0 ExitCode=$3:0 NodeList=$4 StdOut=$work/log"
}
jobs() {
    rm -f "$work/asked"
    cat >"$work/job"
}
{ state PENDING Resources 0 '(null)'; state RUNNING None 0 'node[1-2]'; state FAILED None 3 'node[1-2]'; } | jobs
printf 'step 1\nstep 2\n' >"$work/log"
run 3 submit --follow=42
n=$((n + 1))
diff - "$work/out" >"$work/err" <<'E' || fail "followed: $(cat "$work/err")"
waiting       PENDING: Resources
step 1
step 2
running       on node[1-2]
ended         FAILED, exit code 3
E
state COMPLETED None 0 node1 | jobs
run 0 submit --follow=42 --json
is event submit
is exit_code 0
state RUNNING None 0 node1 | jobs
run 0 submit --cancel 42
says out "write a checkpoint"
calls "--batch --signal=USR2 42"
state PENDING None 0 node1 | jobs
run 0 submit --cancel 42
calls "42"
state COMPLETED None 0 node1 | jobs
run 2 submit --cancel 42
says err "has ended already (COMPLETED)"
calls ""

# Ctrl-C leaves the job alone.
state RUNNING None 0 node1 | jobs
(cd "$work/here" && PATH=$path exec "$lockstep" submit --follow=42) >"$work/out" &
pid=$!
while ! grep -q running "$work/out"; do sleep 0.02; done
kill -INT "$pid"
wait "$pid"
got=$?
n=$((n + 1))
[ "$got" -eq 0 ] || fail "left with exit code $got"
says out "lockstep submit --follow=42"
calls ""

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
