#!/usr/bin/env bash
# memory.limit of ranks that mpirun started: rank 0 decides for all, before anything is allocated, and knows the machines.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/../tools/mpi_here.sh"
needs_mpi
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
needs_python
small=(vit-tiny model.depth=3 batch.per_rank=4)
quick=(data.kind=synthetic data.train_range=0:64 data.test_range=64:80 train.steps=3 train.validate_every=none)

# A limit that does not fit: all end, and one says why.
mpi 2 -n 2 "$LOCKSTEP" train "${small[@]}" "${quick[@]}" memory.limit=100000 --run-dir small --quiet
says err "memory.limit is 97.7 KiB, and a rank would take"
[ "$(grep -c 'a rank would take' "$work/err")" -eq 1 ] || fail "it is said more than once: $(cat "$work/err")"
[ ! -e small ] || fail "a run was made although it does not fit"

# One rank alone has it, or another one than rank 0: nobody waits for ever, and what differs comes before what does not fit.
mpi 5 -n 1 "$LOCKSTEP" train "${small[@]}" "${quick[@]}" memory.limit=100000 --run-dir apart --quiet : \
    -n 1 "$LOCKSTEP" train "${small[@]}" "${quick[@]}" --run-dir apart --quiet
says err "memory.limit= (rank 0: 100000)"
mpi 5 -n 1 "$LOCKSTEP" train "${small[@]}" "${quick[@]}" --run-dir apart --quiet : \
    -n 1 "$LOCKSTEP" train "${small[@]}" "${quick[@]}" memory.limit=100000 --run-dir apart --quiet
says err "memory.limit=100000 (rank 0: "
[ ! -e apart ] || fail "ranks that disagree began a run"

# Two machines of two ranks: what fits to the byte is let pass, and one byte less is refused; under the strategies that
# count the ranks of a machine.
export LOCKSTEP_COMM_HOSTS=2
for strategy in ddp hybrid; do
    bench=(bench "${small[@]}" parallel.strategy=$strategy --steps 1 --seconds 0.05 --threads 1)
    mpi 0 -n 4 "$LOCKSTEP" "${bench[@]}" --json
    bytes=$(field planned_bytes)
    mpi 0 -n 4 "$LOCKSTEP" "${bench[@]}" memory.limit="$bytes"
    mpi 2 -n 4 "$LOCKSTEP" "${bench[@]}" memory.limit=$((bytes - 1))
    says err "a rank would take"
done

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
