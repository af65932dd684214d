#!/usr/bin/env bash
# Ranks under a real mpirun: the same checks as for threads and forked processes, on one host and on several that are
# made of one (LOCKSTEP_COMM_HOSTS), with connections between their ranks, and with MPI alone.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/../tools/mpi_here.sh"
needs_mpi
program=$LS_BUILD_DIR/tests/tools/mpi_ranks
failures=0

# start RANKS CASE: its output and mpirun's exit status
start() {
    timeout 60 "${mpi[@]}" -n "$1" "$program" "$2" 2>&1
}

# expect NAME STATUS
expect() {
    if [ "$2" -eq 0 ]; then
        echo "$1: ok"
    else
        printf '%s: failed (%s)\n%s\n' "$1" "$2" "$output"
        failures=$((failures + 1))
    fi
}

for ranks in 3 8; do
    output=$(start $ranks everything)
    expect "$ranks ranks on one host" $?
done
# 3 hosts with neighbouring ranks; 2 with every other rank; and each rank a host of its own.  Between hosts vectors have connections of
# their own.
export LOCKSTEP_LOG=info
for hosts_ranks in 3:8 -2:5 4:4 2:2; do
    export LOCKSTEP_COMM_HOSTS=${hosts_ranks%:*}
    output=$(start "${hosts_ranks#*:}" everything)
    [ $? -eq 0 ] && [[ $output == *"vectors go over connections between ranks"* ]]
    expect "${hosts_ranks#*:} ranks, hosts $LOCKSTEP_COMM_HOSTS" $?
done
# Several buckets in hand at once, with weights that differ: a machine's only part, and sums of two, as they are and through MPI.
for lines in on off; do
    export LOCKSTEP_COMM_HOSTS=2 LOCKSTEP_LINES=$lines
    output=$(start 3 buckets)
    expect "several buckets, lines $lines" $?
done
unset LOCKSTEP_LINES
# What is taken where a rank is late, of so many slices that others could run far ahead: ranks alone on their machines and several on each, neighbours
# or not (a machine then has several shares), as many on all machines or not.
for hosts_ranks in 2:2 4:4 2:4 -2:4 2:3 -2:5; do
    export LOCKSTEP_COMM_HOSTS=${hosts_ranks%:*}
    for case in sum scatter gather broadcast narrow-sum narrow-scatter; do
        output=$(start "${hosts_ranks#*:}" late-$case)
        expect "a late rank of ${hosts_ranks#*:}, hosts $LOCKSTEP_COMM_HOSTS, $case" $?
    done
done
export LOCKSTEP_COMM_HOSTS=3
for case in sum scatter gather; do
    output=$(LOCKSTEP_LINES=off start 3 late-$case)
    expect "a late rank of 3, through MPI, $case" $?
done
for hosts in 1 2 3 4; do
    export LOCKSTEP_COMM_HOSTS=$hosts
    output=$(start 4 narrow)
    expect "narrow wires on $hosts hosts" $?
done
# Where connections are not wanted, MPI carries everything.
export LOCKSTEP_COMM_HOSTS=2
output=$(LOCKSTEP_LINES=off start 4 everything)
[ $? -eq 0 ] && [[ $output == *"vectors go through MPI: LOCKSTEP_LINES=off"* ]]
expect "everything through MPI" $?
# A system that is out of descriptors: nobody hangs, and MPI carries everything.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if printf '#include <errno.h>\nint accept4(int fd, void *a, void *n, int flags) { (void)fd, (void)a, (void)n, (void)flags; errno = EMFILE; return -1; }\n' |
    cc -x c -shared -fPIC -o "$folder/full.so" - 2>"$folder/log"; then
    output=$(timeout 60 "${mpi[@]}" -n 2 env ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" LD_PRELOAD="$folder/full.so" "$program" everything 2>&1)
    [ $? -eq 0 ] && [[ $output == *"vectors go through MPI: rank 0 cannot accept: Too many open files"* ]]
    expect "no descriptor for a connection" $?
fi
# A peer of another build, which may await other messages: all ranks are told, with lines and without.
# (What a rank says of itself begins with the form of its messages.)
form=$(sed -n 's/^#define LSI_LINES_FORM UINT64_C(\([0-9]*\))$/\1/p' "$(dirname "$0")/../../src/comm/lines.h")
if mpicc -x c -shared -fPIC -o "$folder/other.so" - 2>"$folder/log" <<EOF; then
#include <mpi.h>
#include <stdint.h>
#include <string.h>
int MPI_Allgather(const void *from, int n, MPI_Datatype t, void *to, int m, MPI_Datatype u, MPI_Comm c)
{
    uint64_t word[512] = {0};

    if (t == MPI_BYTE && n >= 48 && n <= (int)sizeof word) memcpy(word, from, (size_t)n);
    if (word[0] != $form) return PMPI_Allgather(from, n, t, to, m, u, c);
    word[0]++;
    return PMPI_Allgather(word, n, t, to, m, u, c);
}
EOF
    right=(-n 1 "$program" everything)
    other=(-n 1 env ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" LD_PRELOAD="$folder/other.so" "$program" everything)
    for lines in on off; do
        output=$(LOCKSTEP_LINES=$lines timeout 60 "${mpi[@]}" "${right[@]}" : "${other[@]}" 2>&1)
        [ $? -ne 0 ] && [[ $output == *"ranks 0 and 1 exchange vectors in different ways"*"different builds of Lockstep"* ]]
        expect "a peer of another build, lines $lines" $?
    done
else
    cat "$folder/log"
fi
# A message of another length: the rank that finds it says so and ends the run with the code of a lost rank, at once.
SECONDS=0
output=$(start 2 misfit)
status=$?
[ $status -eq 4 ] && [ $SECONDS -lt 20 ] && [[ $output == *"rank 0: rank 1 sent 12 bytes as message "*", and "*" were awaited"* ]]
expect "a message of another length" $?
unset LOCKSTEP_COMM_HOSTS LOCKSTEP_LOG

# A rank that is killed: the others must say who and end by themselves, or be ended by mpirun; nothing may hang.
output=$(start 3 lose)
status=$?
[ $status -ne 0 ] && [ $status -ne 124 ]
expect "a killed rank ends the run" $?

# Where there is no module, the message says what to install.  (A module that is installed would be found.)
output=$(LOCKSTEP_MODULES= "$program" place)
[[ $? -eq 0 || $output == *libopenmpi-dev* ]]
expect "no module" $?
[ $failures -eq 0 ]
