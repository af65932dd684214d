/* run.c: from the way a process was started to the call of its rank's work. */
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "launch/launch_internal.h"

int ls_launch_exit_code(ls_status status)
{
    switch (status) {
    case LS_OK: return LS_EXIT_DONE;
    case LS_INVALID: return LS_EXIT_INVALID;
    case LS_DATA: return LS_EXIT_DAMAGED;
    case LS_LOST: return LS_EXIT_LOST;
    case LS_DISAGREE: return LS_EXIT_DISAGREED;
    default: return LS_EXIT_FAILED;
    }
}

bool ls_place_is_watched(const ls_place *place)
{
    return strcmp(place->how, "-n") == 0 || strcmp(place->how, "by hand") == 0;
}

static ls_status run_alone(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main,
                           void *arg, int *code, ls_err *err)
{
    ls_place place = start->place;
    ls_comm *comm = NULL;
    ls_status st = LS_OK;

    place.threads = o->threads;
    LS_TRY(ls_comm_open_self(&comm, err));
    *code = rank_main(&place, comm, arg);
out:
    ls_comm_close(comm);
    return st;
}

static ls_status run_local(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main,
                           void *arg, int *code, ls_err *err)
{
    lsi_cores cores = {0};
    char text[512];
    ls_status st = LS_OK;

    LS_TRY(lsi_cores_share(&cores, start->place.local_size, o, err));
    ls_parallel_set_wait_policy(cores.threads * start->place.local_size);
    lsi_cores_text(&cores, text, sizeof text);
    if (!o->silent) printf("ranks         %d here, %s\n", start->place.size, text);
    LS_TRY(lsi_group_run(start, &cores, rank_main, arg, NULL, code, err));
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
    case LS_START_RANK:
    case LS_START_NODE:
        return ls_fail(err, LS_UNSUPPORTED,
                       "%d ranks by %s: this version starts ranks of one machine only, with -n",
                       start->place.size, start->place.how);
    case LS_START_ALONE: break;
    }
    return run_alone(start, o, rank_main, arg, code, err);
}
