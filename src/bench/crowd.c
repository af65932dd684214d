/* crowd.c: whether ranks have a core for each of their threads. */
#include <sched.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "bench/machine.h"
#include "bench/ranks.h"

/* What a rank says of itself. */
typedef struct seat {
    char machine[LS_MACHINE_NAME_MAX];
    int threads, cores; /* cores 0: the mask counts */
    cpu_set_t mask;
} seat;

static bool is_on(const seat *s, const seat *machine)
{
    return strcmp(s->machine, machine->machine) == 0;
}

static int cores_beside(const seat *all, int ranks, const seat *one)
{
    cpu_set_t together;
    int cores = 0;

    CPU_ZERO(&together);
    for (int r = 0; r < ranks; r++) {
        if (!is_on(&all[r], one)) continue;
        if (all[r].cores > cores) cores = all[r].cores;
        CPU_OR(&together, &together, &all[r].mask);
    }
    return cores > 0 ? cores : CPU_COUNT(&together);
}

static int threads_beside(const seat *all, int ranks, const seat *one)
{
    int threads = 0;

    for (int r = 0; r < ranks; r++)
        if (is_on(&all[r], one)) threads += all[r].threads;
    return threads;
}

ls_status ls_crowd_look(ls_crowd *out, ls_comm *comm, int threads, int cores, ls_err *err)
{
    const int ranks = comm != NULL ? ls_comm_size(comm) : 1;
    seat mine = {.threads = threads, .cores = cores};
    seat *all = ls_alloc(LS_MEM_CLI, sizeof *all * (size_t)ranks);
    ls_status st = LS_OK;

    *out = (ls_crowd){.hosts = comm != NULL ? ls_comm_hosts(comm) : 1};
    if (all == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d ranks", ranks);
    lsi_machine_name(mine.machine, comm);
    /* More processors than a mask holds: the count alone is known. */
    if (sched_getaffinity(0, sizeof mine.mask, &mine.mask) != 0 && cores == 0)
        mine.cores = ls_parallel_cores();
    all[0] = mine;
    if (comm != NULL) LS_TRY(ls_comm_gather_all(comm, &mine, sizeof mine, all, "counting cores", err));
    out->cores = cores_beside(all, ranks, &all[0]);
    for (int r = 0; r < ranks; r++)
        if (threads_beside(all, ranks, &all[r]) > cores_beside(all, ranks, &all[r]))
            out->oversubscribed = true;
out:
    ls_free(all);
    return st;
}
