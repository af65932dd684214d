/* cores.c: how the cores of a machine are divided among its ranks: threads per rank, and which cores they run
 * on.
 *
 * What counts is what this process may use: its affinity mask (batch systems, taskset) and the processor time
 * that its control group grants (containers).  A rank is bound to its part of the mask, not to as many cores
 * as it has threads, so that two runs side by side with few threads do not meet on the first cores. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "launch/launch_internal.h"

/* -- what there is ----------------------------------------------------------------------------------------
 */

/* One whole number in a file; -1 when there is none. */
static long read_number(const char *path)
{
    FILE *f = fopen(path, "r");
    long x = -1;

    if (f == NULL) return -1;
    if (fscanf(f, "%ld", &x) != 1) x = -1;
    fclose(f);
    return x;
}

typedef struct cpu_at {
    long package, core;
    int cpu;
} cpu_at;

static int by_place(const void *a, const void *b)
{
    const cpu_at *x = a, *y = b;

    if (x->package != y->package) return x->package < y->package ? -1 : 1;
    if (x->core != y->core) return x->core < y->core ? -1 : 1;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/* The processors of the mask, ordered by package, core and hardware thread. */
static ls_status list_cpus(lsi_cores *c, ls_err *err)
{
    const int max = CPU_SETSIZE * 16;
    cpu_set_t *set = CPU_ALLOC((size_t)max);
    const size_t bytes = CPU_ALLOC_SIZE((size_t)max);
    cpu_at *all = ls_alloc(LS_MEM_CLI, sizeof *all * (size_t)max);
    ls_status st = LS_OK;
    int n = 0;

    if (set == NULL || all == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for the list of processors");
        goto out;
    }
    if (sched_getaffinity(0, bytes, set) != 0) CPU_ZERO_S(bytes, set);
    for (int cpu = 0; cpu < max; cpu++) {
        char path[128];
        if (!CPU_ISSET_S((size_t)cpu, bytes, set)) continue;
        all[n].cpu = cpu;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
        all[n].package = read_number(path);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
        all[n++].core = read_number(path);
    }
    qsort(all, (size_t)n, sizeof *all, by_place);
    c->cpus = ls_alloc(LS_MEM_CLI, sizeof *c->cpus * (size_t)(n > 0 ? n : 1));
    if (c->cpus == NULL) {
        st = ls_fail(err, LS_NOMEM, "no memory for the list of processors");
        goto out;
    }
    for (int i = 0; i < n; i++) c->cpus[i] = all[i].cpu;
    c->n_cpus = n;
out:
    if (set != NULL) CPU_FREE(set);
    ls_free(all);
    return st;
}

/* Cores' worth of time that the control groups around this process grant, rounded up; INT_MAX: no limit.
 * Version 2 has cpu.max ("400000 100000" or "max 100000") at every level, version 1 cpu.cfs_quota_us at its
 * own. */
static int group_limit(void)
{
    char line[PATH_MAX + 64], path[PATH_MAX + 64], group[PATH_MAX] = "";
    double least = INT_MAX;
    FILE *f = fopen("/proc/self/cgroup", "r");

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::", 3) == 0) snprintf(group, sizeof group, "%.4000s", line + 3);
    }
    if (f != NULL) fclose(f);
    for (bool more = true; more;) {
        char *slash = strrchr(group, '/');
        double quota, period;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        f = fopen(path, "r");
        if (f != NULL && fscanf(f, "%lf %lf", &quota, &period) == 2 && period > 0 && quota / period < least)
            least = quota / period;
        if (f != NULL) fclose(f);
        more = group[0] != '\0';
        if (slash != NULL) *slash = '\0';
    }
    const long quota = read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    const long period = read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (quota > 0 && period > 0 && (double)quota / (double)period < least)
        least = (double)quota / (double)period;
    return least >= INT_MAX ? INT_MAX : least <= 1 ? 1 : (int)(least + 0.999);
}

int ls_launch_cores(void)
{
    const int cores = ls_parallel_cores(), limit = group_limit();

    return cores < limit ? cores : limit;
}

/* -- sharing ----------------------------------------------------------------------------------------------
 */

static bool is_thread_count_set(void)
{
    return getenv("LOCKSTEP_THREADS") != NULL || getenv("OMP_NUM_THREADS") != NULL;
}

ls_status lsi_cores_divide(lsi_cores *c, int n_ranks, const ls_launch_options *o, ls_err *err)
{
    const bool wanted = o->bind != NULL && strcmp(o->bind, "core") == 0;
    ls_status st = LS_OK;

    *c = (lsi_cores){.n_ranks = n_ranks};
    if (o->bind != NULL && !wanted && strcmp(o->bind, "none") != 0)
        return ls_fail(err, LS_INVALID, "--bind %.60s: expected core or none", o->bind);
    LS_TRY(list_cpus(c, err));
    c->limit = group_limit();
    if (c->limit > c->n_cpus) c->limit = c->n_cpus > 0 ? c->n_cpus : 1;
    if (wanted && n_ranks > c->n_cpus)
        return ls_fail(err, LS_INVALID, "--bind core: %d ranks, but %d cores at hand: use --bind none",
                       n_ranks, c->n_cpus);
    /* Under a limit of time the cores of the mask are shared with others, who bind to the first ones, too. */
    c->bound = wanted || (o->bind == NULL && n_ranks > 1 && n_ranks <= c->n_cpus && c->limit == c->n_cpus);
    c->threads = o->threads > 0 ? o->threads : ls_parallel_default_threads(n_ranks);
    if (o->threads <= 0 && !is_thread_count_set() && c->threads > c->limit / n_ranks)
        c->threads = c->limit / n_ranks > 1 ? c->limit / n_ranks : 1;
out:
    return st;
}

void lsi_cores_release(lsi_cores *c)
{
    ls_free(c->cpus);
    *c = (lsi_cores){0};
}

static void part_of(const lsi_cores *c, int rank, int *first, int *end)
{
    int64_t lo, hi;

    ls_parallel_range(c->n_cpus, rank, c->n_ranks, &lo, &hi);
    *first = (int)lo;
    *end = (int)hi;
}

void lsi_cores_bind(const lsi_cores *c, int rank)
{
    int first, end, largest = 0;
    cpu_set_t *set;
    size_t bytes;

    if (!c->bound) return;
    part_of(c, rank, &first, &end);
    for (int i = first; i < end; i++)
        if (c->cpus[i] > largest) largest = c->cpus[i];
    set = CPU_ALLOC((size_t)largest + 1);
    if (set == NULL) return;
    bytes = CPU_ALLOC_SIZE((size_t)largest + 1);
    CPU_ZERO_S(bytes, set);
    for (int i = first; i < end; i++) CPU_SET_S((size_t)c->cpus[i], bytes, set);
    (void)sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
}

/* "0-3,8" of a part. */
static size_t add_part(const lsi_cores *c, int rank, char *buf, size_t size)
{
    size_t at = 0;
    int first, end;

    part_of(c, rank, &first, &end);
    for (int i = first; i < end && at + 24 < size; i++) {
        int last = i;
        while (last + 1 < end && c->cpus[last + 1] == c->cpus[last] + 1) last++;
        at += (size_t)snprintf(buf + at, size - at, "%s%d", i > first ? "," : "", c->cpus[i]);
        if (last > i) at += (size_t)snprintf(buf + at, size - at, "-%d", c->cpus[last]);
        i = last;
    }
    return at;
}

void lsi_cores_text(const lsi_cores *c, char *buf, size_t size)
{
    const int shown = c->n_ranks > 8 ? 4 : c->n_ranks;
    size_t at = (size_t)snprintf(buf, size, "%d thread%s each, ", c->threads, c->threads == 1 ? "" : "s");

    if (!c->bound) {
        snprintf(buf + at, size - at, "not bound to cores (%d at hand)", c->limit);
        return;
    }
    at += (size_t)snprintf(buf + at, size - at, "cores ");
    for (int r = 0; r < shown && at + 64 < size; r++) {
        if (r > 0) at += (size_t)snprintf(buf + at, size - at, " | ");
        at += add_part(c, r, buf + at, size - at);
    }
    if (shown < c->n_ranks) snprintf(buf + at, size - at, " | ...");
}

int lsi_cores_threads_of_rank(const ls_launch_options *o, int local_size)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    int n = ls_parallel_default_threads(1); /* the cores of the mask, or as the user has set */
    int each = (int)online / (local_size > 1 ? local_size : 1);

    if (o->threads > 0) return o->threads;
    if (is_thread_count_set()) return n;
    if (each < 1) each = 1;
    return n < each ? n : each;
}
