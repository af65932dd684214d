/* machine_company.c: what files of `bench --export` say of ranks that compute at the same time: how they slow
 * one another, how unlike ranks are that do the same, and how steps spread.
 *
 * Ranks beside others without exchange (`bench --beside`) say what sharing a machine costs, by whole steps;
 * where there are none, files of more ranks do, by the nodes that both have.  Ranks of several machines say
 * what exchanging costs those that compute next to it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "predict/machine_exports_internal.h"

enum { STEPS_LEAST = 20, UNEVEN_MAX = 4096 };

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* -- crowding ---------------------------------------------------------------------------------------------
 */

/* Steps of all ranks of a file of `--beside`, ascending, into `to` with room for UNEVEN_MAX; how many. */
static int32_t steps_of_ranks(const lsi_export *f, double *to)
{
    const json_t *others = json_object_get(json_object_get(f->o, "result"), "beside_step_s");
    int32_t n = 0;

    to[n++] = f->step_s;
    for (size_t i = 0; i < json_array_size(others) && n < UNEVEN_MAX; i++) {
        const double s = json_number_value(json_array_get(others, i));
        if (s > 0 && s < 1e9) to[n++] = s;
    }
    qsort(to, (size_t)n, sizeof *to, by_size);
    return n;
}

/* The step of the same batch of one rank alone, the mean of those that were measured; 0: none was. */
static double step_alone(const lsi_maker *k, const lsi_export *f)
{
    double sum = 0, n = 0;

    for (int i = 0; i < k->n_files; i++) {
        const lsi_export *a = &k->files[i];
        if (a->company != k->fewest || a->batch != f->batch || strcmp(a->experiment, f->experiment) != 0)
            continue;
        sum += a->step_s;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

/* Of n pairs of a value and its weight: the value that half of the weight lies below. */
static double weighted_median(double *pairs, size_t n)
{
    double all = 0, below = 0;

    qsort(pairs, n, 2 * sizeof *pairs, by_size);
    for (size_t i = 0; i < n; i++) all += pairs[2 * i + 1];
    for (size_t i = 0; i < n; i++) {
        below += pairs[2 * i + 1];
        if (below >= all / 2) return pairs[2 * i];
    }
    return 0;
}

/* How much longer the nodes of a file of more ranks took than those of the fewest: of the median one, by what
 * they take, since one of them that was disturbed is not all; 0: it has none in common. */
static double crowded(const lsi_maker *k, const lsi_export *f, double *room)
{
    size_t n_pairs = 0;

    for (int p = 0; p < f->n_plans; p++) {
        const ls_document *d = &f->plans[p];
        for (int32_t i = 0; i < d->n_nodes; i++) {
            const ls_doc_node *n = &d->nodes[i];
            char attributes[LSI_ATTRIBUTES];
            int pieces;
            const ls_node_cost c = ls_machine_node_cost(k->m, d, n);
            if (lsi_is_collective(d, i) || c.source != LS_COST_MEASURED || c.seconds <= 0) continue;
            lsi_machine_attributes(n, attributes, &pieces);
            room[2 * n_pairs] = n->seconds * f->scale * pieces / c.seconds;
            room[2 * n_pairs++ + 1] = c.seconds;
        }
    }
    return weighted_median(room, n_pairs);
}

/* Doubles that any of this needs at once. */
static size_t room_for(const lsi_maker *k)
{
    size_t most = UNEVEN_MAX;

    for (int i = 0; i < k->n_files; i++) {
        size_t n = 0;
        for (int p = 0; p < k->files[i].n_plans; p++) n += 2 * (size_t)k->files[i].plans[p].n_nodes;
        most = n > most ? n : most;
    }
    return most;
}

/* The same by whole steps, which are many more than those in which nodes were timed: of the median rank. */
static double crowded_beside(const lsi_maker *k, const lsi_export *f, double *room)
{
    const double alone = step_alone(k, f);
    const int32_t n = steps_of_ranks(f, room);

    return alone > 0 ? ls_quantile_sorted(room, (size_t)n, 0.5) / alone : crowded(k, f, room);
}

static int by_ranks(const void *a, const void *b)
{
    const ls_crowding *x = a, *y = b;

    return x->ranks != y->ranks ? x->ranks - y->ranks : (x->batch > y->batch) - (x->batch < y->batch);
}

/* Files that say what sharing a machine costs: those without exchange, if there are any. */
static bool is_of_crowding(const lsi_maker *k, const lsi_export *f, bool beside)
{
    return f->here > k->m->crowding[0].ranks && (beside ? f->beside > 0 : f->hosts == 1);
}

/* Of several files with as many ranks and the same batch the mean counts. */
static void add_crowding(lsi_maker *k, bool beside, double *room)
{
    ls_machine *m = k->m;

    for (int i = 0; i < k->n_files; i++) {
        const lsi_export *f = &k->files[i];
        const double batch = beside ? f->batch : 0;
        double sum = 0, n = 0;
        bool done = !is_of_crowding(k, f, beside);
        for (int32_t c = 0; c < m->n_crowding; c++)
            done |= m->crowding[c].ranks == f->here && m->crowding[c].batch == batch;
        for (int j = i; j < k->n_files && !done; j++) {
            const lsi_export *g = &k->files[j];
            double factor;
            if (g->here != f->here || !is_of_crowding(k, g, beside) || (beside && g->batch != batch))
                continue;
            factor = beside ? crowded_beside(k, g, room) : crowded(k, g, room);
            sum += factor;
            n += factor > 0;
        }
        if (n > 0) m->crowding[m->n_crowding++] = (ls_crowding){f->here, batch, sum / n};
    }
    qsort(m->crowding, (size_t)m->n_crowding, sizeof *m->crowding, by_ranks);
}

/* What a node takes of a rank, alone; of an update that ranks of a machine divide, its part. */
static double seconds_of(const lsi_maker *k, const ls_document *d, const ls_doc_node *n)
{
    const ls_node_cost c = ls_machine_node_cost(k->m, d, n);
    char attributes[LSI_ATTRIBUTES];
    int pieces;

    lsi_machine_attributes(n, attributes, &pieces);
    return c.launch_s + (c.seconds - c.launch_s) / pieces;
}

/* Of all machines, and not of a group, which is on one. */
static bool is_between_machines(const ls_document *d, const ls_doc_collective *c)
{
    return c->bucket >= 0 && strstr(d->nodes[c->start].attributes, " group=") == NULL;
}

/* Seconds of the nodes of a step; bytes of the vectors that machines exchange. */
static void weigh(const lsi_maker *k, const lsi_export *f, double *seconds, double *bytes)
{
    *seconds = *bytes = 0;
    for (int p = 0; p < f->n_plans; p++) {
        const ls_document *d = &f->plans[p];
        const double runs = (double)d->runs;
        for (int32_t i = 0; i < d->n_nodes; i++)
            if (!lsi_is_collective(d, i)) *seconds += runs * seconds_of(k, d, &d->nodes[i]);
        for (int32_t i = 0; i < d->n_collectives; i++)
            if (is_between_machines(d, &d->collectives[i])) *bytes += runs * (double)d->collectives[i].bytes;
    }
}

/* What nodes took longer in files of several machines than ranks take that only share one, for each byte that
 * is exchanged: the mean.  Exchanges take caches and clocks from what is computed next to them, which is a
 * large part of a short step, and little of a long one that exchanges as much. */
static double exchanging(const lsi_maker *k, double *room)
{
    double sum = 0, n = 0;

    for (int i = 0; i < k->n_files; i++) {
        const lsi_export *f = &k->files[i];
        const double factor = f->company > k->fewest && f->hosts > 1 ? crowded(k, f, room) : 0;
        double seconds, bytes;
        if (factor <= 0) continue;
        weigh(k, f, &seconds, &bytes);
        if (bytes <= 0) continue;
        sum += (factor - ls_machine_crowded(k->m, f->here, f->batch)) * seconds / (bytes / f->here);
        n++;
    }
    return n > 0 ? fmin(fmax(0, sum / n), 1) : 0;
}

/* Steps of the ranks of every file of the most ranks beside one another, over that of the median one,
 * ascending: a row of `most` for each file; how many files. */
static int32_t uneven_runs(const lsi_maker *k, int32_t most, double *runs, double *room)
{
    int32_t n = 0;

    for (int i = 0; i < k->n_files; i++) {
        if (k->files[i].beside == 0 || steps_of_ranks(&k->files[i], room) != most) continue;
        for (int32_t r = 0; r < most; r++)
            runs[n * most + r] = room[r] / ls_quantile_sorted(room, (size_t)most, 0.5);
        n++;
    }
    return n;
}

/* Which processors of a virtual machine are slow, and how slow, is another thing a minute later: by how much
 * the slowest of the files differ says how well that of a run to come is known.  One file alone says that it
 * happens, and not how often: half of what it says is error. */
static double uneven_error(const double *runs, int32_t n, int32_t most)
{
    double mean = 0, squares = 0;

    for (int32_t i = 0; i < n; i++) mean += log(runs[i * most + most - 1]) / n;
    if (n == 1) return mean / 2;
    for (int32_t i = 0; i < n; i++) {
        const double off = log(runs[i * most + most - 1]) - mean;
        squares += off * off;
    }
    return fmin(sqrt(squares / (n - 1) * (1 + 1.0 / n)), 10);
}

/* Of those files the median of their slowest, of their second slowest, ...: one that was disturbed is not
 * what ranks do. */
static ls_status make_uneven(lsi_maker *k, double *room)
{
    ls_machine *m = k->m;
    int32_t most = 0, n;
    double *runs, *column;

    for (int i = 0; i < k->n_files; i++)
        if (k->files[i].beside > 0 && steps_of_ranks(&k->files[i], room) > most)
            most = steps_of_ranks(&k->files[i], room);
    if (most < 2) return LS_OK;
    m->uneven = ls_arena_alloc(m->arena, sizeof *m->uneven * (size_t)most);
    runs = ls_alloc(LS_MEM_CLI, sizeof *runs * ((size_t)most + 1) * (size_t)k->n_files);
    if (m->uneven == NULL || runs == NULL) {
        ls_free(runs);
        return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    }
    n = uneven_runs(k, most, runs, room);
    column = runs + (size_t)most * (size_t)k->n_files;
    for (int32_t r = 0; r < most; r++) {
        for (int32_t i = 0; i < n; i++) column[i] = runs[i * most + r];
        qsort(column, (size_t)n, sizeof *column, by_size);
        m->uneven[r] = ls_quantile_sorted(column, (size_t)n, 0.5);
    }
    m->n_uneven = most;
    m->uneven_error = uneven_error(runs, n, most);
    ls_free(runs);
    return LS_OK;
}

ls_status lsi_make_crowding(lsi_maker *k)
{
    ls_machine *m = k->m;
    double *room = ls_alloc(LS_MEM_CLI, sizeof *room * room_for(k));
    bool beside = false;
    ls_status st = LS_OK;

    m->crowding = ls_arena_alloc(m->arena, sizeof *m->crowding * ((size_t)k->n_files + 2));
    if (m->crowding == NULL || room == NULL) {
        ls_free(room);
        return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    }
    m->crowding[m->n_crowding++] = (ls_crowding){k->files[0].here, 0, 1};
    for (int i = 0; i < k->n_files; i++) {
        if (k->files[i].company == k->fewest) m->crowding[0].ranks = k->files[i].here;
        beside |= k->files[i].beside > 0;
    }
    add_crowding(k, beside, room);
    m->exchanging_s_per_byte = exchanging(k, room);
    LS_TRY(make_uneven(k, room));
out:
    ls_free(room);
    return st;
}

/* -- steps ------------------------------------------------------------------------------------------------
 */

/* A file's steps in the order of time, without the first ones, in which a run still settles: `to` has room
 * for all. */
static size_t steps_of(const json_t *steps, double *to)
{
    const size_t all = json_array_size(steps), first = all / 20 > 2 ? all / 20 : 2;
    size_t n = 0;

    for (size_t i = first; i < all; i++) {
        const double s = json_number_value(json_array_get(steps, i));
        if (s > 0 && s < 1e9) to[n++] = s;
    }
    return n;
}

static double median_of(const double *of, size_t n, double *room)
{
    for (size_t i = 0; i < n; i++) room[i] = of[i];
    qsort(room, n, sizeof *room, by_size);
    return n > 0 ? ls_quantile_sorted(room, n, 0.5) : 0;
}

/* Steps of a file as if they were about `length` seconds long, over their median: means of as many that
 * follow one another, since what disturbs lasts for some of them.  How many; 0: they are longer than that. */
static size_t relative_steps(const lsi_export *f, double length, double *to, double *room)
{
    const size_t n = steps_of(json_object_get(f->o, "steps_s"), to);
    const double usual = f->step_s;
    const size_t block = usual > 0 && length > usual ? (size_t)(length / usual + 0.5) : 1;
    size_t blocks = 0;
    double median;

    if (n == 0 || usual > 1.5 * length) return 0;
    for (size_t i = 0; i + block <= n; i += block) {
        double sum = 0;
        for (size_t k = 0; k < block; k++) sum += to[i + k];
        to[blocks++] = sum / (double)block;
    }
    median = median_of(to, blocks, room);
    for (size_t i = 0; i < blocks; i++) to[i] = fmin(fmax(to[i] / median, 0.01), 100); /* as files have it */
    return blocks;
}

/* Files that say how steps spread: those with `beside` others, or with the fewest ranks. */
static bool says_jitter(const lsi_maker *k, const lsi_export *f, int32_t beside)
{
    return beside > 0 ? f->beside == beside : f->company == k->fewest;
}

/* Percentiles of steps of such a length; false, and all 1: there are too few.  `room`: twice all steps. */
static bool find_jitter(const lsi_maker *k, int32_t beside, double length, double out[LS_JITTER_N],
                        double *room, size_t most)
{
    size_t n = 0;

    for (int i = 0; i < LS_JITTER_N; i++) out[i] = 1;
    for (int i = 0; i < k->n_files; i++)
        if (says_jitter(k, &k->files[i], beside))
            n += relative_steps(&k->files[i], length, room + n, room + most);
    if (n < STEPS_LEAST) return false;
    qsort(room, n, sizeof *room, by_size);
    for (int i = 0; i < LS_JITTER_N; i++)
        out[i] = ls_quantile_sorted(room, n, i / 100.0) / ls_quantile_sorted(room, n, 0.5);
    return true;
}

/* Lengths of steps that were measured, ascending, each at least half as long again as the one before. */
static int32_t find_lengths(const lsi_maker *k, double to[LS_MACHINE_JITTERS])
{
    int32_t n = 0;
    double last = 0;

    while (n < LS_MACHINE_JITTERS) {
        double next = INFINITY;
        for (int i = 0; i < k->n_files; i++)
            if (k->files[i].step_s >= 1.5 * last && k->files[i].step_s > 0)
                next = fmin(next, k->files[i].step_s);
        if (isinf(next)) break;
        last = to[n++] = next;
    }
    return n;
}

ls_status lsi_make_jitter(lsi_maker *k)
{
    ls_machine *m = k->m;
    double length[LS_MACHINE_JITTERS], *room;
    const int32_t lengths = find_lengths(k, length);
    int32_t beside = 0;
    size_t most = 1;

    for (int i = 0; i < k->n_files; i++) {
        if (k->files[i].beside > beside) beside = k->files[i].beside;
        most += json_array_size(json_object_get(k->files[i].o, "steps_s"));
    }
    room = ls_alloc(LS_MEM_CLI, sizeof *room * 2 * most);
    if (room == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for %zu steps", most);
    for (int32_t i = 0; i < lengths; i++) {
        ls_jitter *j = &m->jitter[m->n_jitter];
        bool known = find_jitter(k, 0, length[i], j->alone, room, most);
        for (int q = 0; q < LS_JITTER_N; q++) j->crowded[q] = 1;
        if (beside > 0) known |= find_jitter(k, beside, length[i], j->crowded, room, most);
        j->step_s = length[i];
        m->n_jitter += known;
    }
    ls_free(room);
    return LS_OK;
}

/* Files that measured the same as file i: their number, the mean of the logarithms of their steps. */
static int alike(const lsi_maker *k, int i, double *mean)
{
    const lsi_export *f = &k->files[i];
    int n = 0;

    *mean = 0;
    for (int j = 0; j < k->n_files; j++) {
        const lsi_export *g = &k->files[j];
        if (g->ranks != f->ranks || g->beside != f->beside || g->hosts != f->hosts || g->batch != f->batch ||
            strcmp(g->experiment, f->experiment) != 0)
            continue;
        *mean += log(g->step_s);
        n++;
    }
    *mean /= n;
    return n;
}

double lsi_measured_error(const lsi_maker *k)
{
    double squares = 0, free = 0, of = 0, n = 0;

    for (int i = 0; i < k->n_files; i++) {
        double mean;
        const int same = alike(k, i, &mean);
        if (same < 2) continue;
        squares += (log(k->files[i].step_s) - mean) * (log(k->files[i].step_s) - mean);
        free += 1 - 1.0 / same; /* each group has one less than it has files */
        of += same;
        n++;
    }
    return n > 0 ? sqrt(squares / free * (1 + n / of)) : 0;
}
