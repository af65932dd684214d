#!/usr/bin/env bash
# Ranks that a real mpirun started: they compute what one rank computes, and find out when they do not fit together.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/../tools/mpi_here.sh"
needs_mpi
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
common=(data.kind=synthetic data.train_range=0:197 data.test_range=197:230 train.report_every=1st optimizer.momentum=0.9
    train.steps=12)
same=(reproducible=true batch.global=48)

run 0 train mnist "${common[@]}" batch.per_rank=64 --run-dir one --quiet
mpi 0 -n 4 "$LOCKSTEP" train mnist "${common[@]}" batch.per_rank=16 --run-dir four --quiet
same_losses one four 12
mpi 0 -n 3 "$LOCKSTEP" train mnist "${common[@]}" batch.global=64 parallel.accumulate=2 --run-dir uneven --quiet
same_losses one uneven 12

run 0 train mnist "${common[@]}" "${same[@]}" --run-dir bits-1 --quiet
mpi 0 -n 2 "$LOCKSTEP" train mnist "${common[@]}" "${same[@]}" --run-dir bits-2 --quiet
[ "$(hash bits-2)" = "$(hash bits-1)" ] || fail "two ranks of mpirun: $(hash bits-2), one: $(hash bits-1)"
# Each rank a machine of its own: everything travels through MPI.
export LOCKSTEP_COMM_HOSTS=3
mpi 0 -n 3 "$LOCKSTEP" train mnist "${common[@]}" "${same[@]}" --run-dir bits-3 --quiet
[ "$(hash bits-3)" = "$(hash bits-1)" ] || fail "three machines: $(hash bits-3), one: $(hash bits-1)"

# Machines with two ranks and with one, of which the first keep parameters once: the bits of one machine, weights compared.
shared=(batch.per_rank=16 parallel.share=always parallel.verify_every=4st)
unset LOCKSTEP_COMM_HOSTS
run 0 train mnist -n 3 --threads 1 "${common[@]}" "${shared[@]}" --run-dir machine --quiet
for hosts in 2 -2; do
    export LOCKSTEP_COMM_HOSTS=$hosts
    mpi 0 -n 3 "$LOCKSTEP" train mnist --threads 1 "${common[@]}" "${shared[@]}" --run-dir "machines$hosts" --quiet
    [ "$(hash "machines$hosts")" = "$(hash machine)" ] || fail "hosts $hosts: $(hash "machines$hosts"), one: $(hash machine)"
done
unset LOCKSTEP_COMM_HOSTS

# A used directory is refused by rank 0, and the others do not wait.
before=$(ls -lR --time-style=full-iso four)
mpi 2 -n 2 "$LOCKSTEP" train mnist "${common[@]}" batch.per_rank=16 --run-dir four --quiet
says err 'four is the directory of another run'
[ "$(ls -lR --time-style=full-iso four)" = "$before" ] || fail "a refused run changed four"

# One rank was started with another experiment: nothing begins, and both values are said.
mpi 5 -n 1 "$LOCKSTEP" train mnist "${common[@]}" optimizer.lr=0.125 --run-dir apart --quiet : \
    -n 1 "$LOCKSTEP" train mnist "${common[@]}" optimizer.lr=0.25 --run-dir apart --quiet
says err 'rank 1 was started with another experiment than rank 0: optimizer.lr=0.25 (rank 0: 0.125)'
[ ! -e apart ] || fail "ranks that disagree began a run"

# One rank cannot read its data; where they lie may differ from machine to machine.
idx=(data.kind=idx batch.per_rank=8 train.steps=4)
run 0 data make kind=idx path=whole train=100 test=20 shape=1x28x28
cp -r whole torn
for f in torn/train-images*; do
    truncate -s 1000 "$f"
done
mpi 0 -n 2 "$LOCKSTEP" train mnist "${idx[@]}" data.path=whole --run-dir read --quiet
mpi 3 -n 1 "$LOCKSTEP" train mnist "${idx[@]}" data.path=whole --run-dir unread --quiet : \
    -n 1 "$LOCKSTEP" train mnist "${idx[@]}" data.path=torn --run-dir unread --quiet
says err 'torn/train-images'

[ $failures -eq 0 ] && echo "test_ranks_mpi: $n checks passed"
exit $((failures > 0))
