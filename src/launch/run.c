/* run.c: from the way a process was started to the call of its rank's work. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parallel.h"
#include "launch/launch_internal.h"
#include "launch/stall.h"

int ls_launch_exit_code(ls_status status)
{
    switch (status) {
    case LS_OK: return LS_EXIT_DONE;
    case LS_INVALID: return LS_EXIT_INVALID;
    case LS_DATA: return LS_EXIT_DAMAGED;
    case LS_LOST: return LS_EXIT_LOST;
    case LS_DISAGREE: return LS_EXIT_DISAGREED;
    case LS_CANCELLED: return lsi_stop_number() > 0 ? 128 + lsi_stop_number() : LS_EXIT_FAILED;
    default: return LS_EXIT_FAILED;
    }
}

bool ls_place_is_watched(const ls_place *place)
{
    return strcmp(place->how, "-n") == 0 || strcmp(place->how, "by hand") == 0;
}

/* The work of a rank that nobody else watches. */
static int work_watched(const ls_place *place, ls_comm *comm, ls_rank_main rank_main, void *arg)
{
    lsi_stall_thread *watcher = lsi_stall_thread_start(comm);
    const int code = rank_main(place, comm, arg);

    lsi_stall_thread_stop(watcher);
    return code;
}

static ls_status run_alone(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main,
                           void *arg, int *code, ls_err *err)
{
    ls_place place = start->place;
    ls_comm *comm = NULL;
    ls_status st = LS_OK;

    place.threads = o->threads;
    LS_TRY(ls_comm_open_self(&comm, err));
    *code = work_watched(&place, comm, rank_main, arg);
out:
    ls_comm_close(comm);
    return st;
}

/* The first code that mpirun or srun sees is the run's, and a rank that was left is not the cause: it gives
 * the one that is a moment to end first.  The signal that follows ends the wait. */
static void yield_to_cause(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}

/* mpirun or srun has started this rank and watches it. */
static ls_status run_rank(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main,
                          void *arg, int *code, ls_err *err)
{
    ls_place place = start->place;
    ls_comm *comm = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_comm_open_mpi(&comm, err));
    /* Such as srun --mpi=pmix with an MPI that does not know it: every rank would train by itself. */
    if (ls_comm_size(comm) != place.size) {
        st = ls_fail(
            err, LS_INVALID,
            "%s started %d ranks, but MPI knows of %d: they do not fit together (Open MPI: mpirun, or "
            "srun --mpi=pmix; MPICH: mpiexec, or srun --mpi=pmi2)",
            place.how, place.size, ls_comm_size(comm));
        goto out;
    }
    place.rank = ls_comm_rank(comm);
    place.local_rank = ls_comm_local_rank(comm);
    place.local_size = ls_comm_local_size(comm);
    place.node = ls_comm_host(comm);
    place.nodes = ls_comm_hosts(comm);
    place.threads = lsi_cores_threads_of_rank(o, place.local_size);
    ls_parallel_set_wait_policy(place.threads * place.local_size);
    lsi_signals_of_rank(0);
    if (place.rank == 0 && !o->silent)
        printf("ranks         %d by %s on %d machine%s, %d thread%s each\n", place.size, place.how,
               place.nodes, place.nodes == 1 ? "" : "s", place.threads, place.threads == 1 ? "" : "s");
    *code = work_watched(&place, comm, rank_main, arg);
out:
    ls_comm_close(comm);
    if (st == LS_OK && *code == LS_EXIT_LOST) yield_to_cause();
    return st;
}

static ls_status run_local(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main,
                           void *arg, int *code, ls_err *err)
{
    lsi_cores cores = {0};
    char text[512];
    ls_status st = LS_OK;

    LS_TRY(lsi_cores_divide(&cores, start->place.local_size, o, err));
    ls_parallel_set_wait_policy(cores.threads * start->place.local_size);
    lsi_cores_text(&cores, text, sizeof text);
    if (!o->silent) printf("ranks         %d here, %s\n", start->place.size, text);
    LS_TRY(lsi_group_run(start, &cores, rank_main, arg, NULL, o->end, code, err));
out:
    lsi_cores_release(&cores);
    return st;
}

ls_status ls_launch_run(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main, void *arg,
                        int *code, ls_err *err)
{
    *code = LS_EXIT_FAILED;
    switch (start->kind) {
    case LS_START_LOCAL: return run_local(start, o, rank_main, arg, code, err);
    case LS_START_RANK: return run_rank(start, o, rank_main, arg, code, err);
    case LS_START_MACHINE: return lsi_run_machine(start, o, rank_main, arg, code, err);
    case LS_START_ALONE: break;
    }
    return run_alone(start, o, rank_main, arg, code, err);
}
