# mpi_here.sh: what the tests that start ranks by a real mpirun share; sourced by tests/*/test_*.sh.
# Sets mpi: mpirun and its options.

# no_mpi: prints why ranks cannot be started by mpirun here; fails where they can
no_mpi() {
    if [ ! -r "$LS_BUILD_DIR/lockstep-mpi.so" ]; then
        echo "the MPI module was not built (no MPI was found)"
    elif ! command -v mpirun >/dev/null; then
        echo "mpirun is not installed (Debian: openmpi-bin)"
    elif grep -q '^LS_SANITIZE:.*=.*thread' "$LS_BUILD_DIR/CMakeCache.txt"; then
        echo "ThreadSanitizer cannot see into MPI"
    else
        return 1
    fi
}

# needs_mpi: for tests that are nothing without it
needs_mpi() {
    local why
    why=$(no_mpi) || return 0
    echo "skipped: $why"
    exit 77
}

export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # MPI keeps what it allocates until the end
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# The mpirun of Open MPI 4 may see the end of a rank before it hears that the rank has finalised, and then calls a good run a
# failed one ("rank 1 with PID 0 ... exiting improperly", seldom).  A rank that fails ends with a code or
# by a signal, which it still sees.
export OMPI_MCA_orte_allowed_exit_without_sync=1
# Options of Open MPI's mpirun that MPICH's does not know (nor need).
mpi=(mpirun)
mpirun --version 2>&1 | grep -q "Open MPI" && mpi+=(--oversubscribe --bind-to none)
