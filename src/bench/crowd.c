/* crowd.c: whether ranks have a core for each of their threads. */
#include <sched.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "bench/ranks.h"

/* What a rank says of itself. */
typedef struct seat {
    int host, threads, cores; /* cores 0: the mask counts */
    cpu_set_t mask;
} seat;

static int cores_of_host(const seat *all, int ranks, int host)
{
    cpu_set_t together;
    int cores = 0;

    CPU_ZERO(&together);
    for (int r = 0; r < ranks; r++) {
        if (all[r].host != host) continue;
        if (all[r].cores > cores) cores = all[r].cores;
        CPU_OR(&together, &together, &all[r].mask);
    }
    return cores > 0 ? cores : CPU_COUNT(&together);
}

static int threads_of_host(const seat *all, int ranks, int host)
{
    int threads = 0;

    for (int r = 0; r < ranks; r++)
        if (all[r].host == host) threads += all[r].threads;
    return threads;
}

ls_status ls_crowd_look(ls_crowd *out, ls_comm *comm, int threads, int cores, ls_err *err)
{
    const int ranks = comm != NULL ? ls_comm_size(comm) : 1;
    seat mine = {comm != NULL ? ls_comm_host(comm) : 0, threads, cores, {{0}}};
    seat *all = ls_alloc(LS_MEM_CLI, sizeof *all * (size_t)ranks);
    ls_status st = LS_OK;

    *out = (ls_crowd){.hosts = comm != NULL ? ls_comm_hosts(comm) : 1};
    if (all == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d ranks", ranks);
    /* More processors than a mask holds: the count alone is known. */
    if (sched_getaffinity(0, sizeof mine.mask, &mine.mask) != 0 && cores == 0)
        mine.cores = ls_parallel_cores();
    all[0] = mine;
    if (comm != NULL) LS_TRY(ls_comm_gather_all(comm, &mine, sizeof mine, all, "counting cores", err));
    out->cores = cores_of_host(all, ranks, all[0].host);
    for (int h = 0; h < out->hosts; h++)
        if (threads_of_host(all, ranks, h) > cores_of_host(all, ranks, h)) out->oversubscribed = true;
out:
    ls_free(all);
    return st;
}
