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

/* How much longer the nodes of a file of more ranks took than those of the fewest; 0: it has none in
 * common. */
static double crowded(const lsi_maker *k, const lsi_export *f)
{
    double here = 0, alone = 0;

    for (int p = 0; p < f->n_plans; p++) {
        const ls_document *d = &f->plans[p];
        for (int32_t i = 0; i < d->n_nodes; i++) {
            const ls_doc_node *n = &d->nodes[i];
            char attributes[LSI_ATTRIBUTES];
            int pieces;
            const ls_node_cost c = ls_machine_node_cost(k->m, d, n);
            if (lsi_is_collective(d, i) || c.source != LS_COST_MEASURED) continue;
            lsi_machine_attributes(n, attributes, &pieces);
            here += n->seconds * f->scale * pieces;
            alone += c.seconds;
        }
    }
    return alone > 0 ? here / alone : 0;
}

/* The same by whole steps, which are many more than those in which nodes were timed: of the median rank. */
static double crowded_beside(const lsi_maker *k, const lsi_export *f, double *room)
{
    const double alone = step_alone(k, f);
    const int32_t n = steps_of_ranks(f, room);

    return alone > 0 ? ls_quantile_sorted(room, (size_t)n, 0.5) / alone : crowded(k, f);
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
            factor = beside ? crowded_beside(k, g, room) : crowded(k, g);
            sum += factor;
            n += factor > 0;
        }
        if (n > 0) m->crowding[m->n_crowding++] = (ls_crowding){f->here, batch, sum / n};
    }
    qsort(m->crowding, (size_t)m->n_crowding, sizeof *m->crowding, by_ranks);
}

/* How much longer nodes took in files of several machines than ranks take that only share one: the mean; 1
 * where no file says.  Exchanges take caches and clocks from what is computed next to them. */
static double exchanging(const lsi_maker *k)
{
    double sum = 0, n = 0;

    for (int i = 0; i < k->n_files; i++) {
        const lsi_export *f = &k->files[i];
        const double factor = f->company > k->fewest && f->hosts > 1 ? crowded(k, f) : 0;
        if (factor > 0) sum += factor / ls_machine_crowded(k->m, f->here, f->batch);
        n += factor > 0;
    }
    return n > 0 ? fmax(1, sum / n) : 1;
}

/* Of the files of the most ranks beside one another: the mean of their slowest, of their second slowest, ...
 */
static ls_status make_uneven(lsi_maker *k, double *room)
{
    ls_machine *m = k->m;
    int32_t most = 0, n = 0;

    for (int i = 0; i < k->n_files; i++)
        if (k->files[i].beside > 0 && steps_of_ranks(&k->files[i], room) > most)
            most = steps_of_ranks(&k->files[i], room);
    if (most < 2) return LS_OK;
    m->uneven = ls_arena_alloc(m->arena, sizeof *m->uneven * (size_t)most);
    if (m->uneven == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    for (int i = 0; i < k->n_files; i++) {
        if (k->files[i].beside == 0 || steps_of_ranks(&k->files[i], room) != most) continue;
        n++;
        for (int32_t r = 0; r < most; r++) {
            const double x = room[r] / ls_quantile_sorted(room, (size_t)most, 0.5);
            m->uneven[r] = n == 1 ? x : m->uneven[r] + (x - m->uneven[r]) / n;
        }
    }
    m->n_uneven = most;
    return LS_OK;
}

ls_status lsi_make_crowding(lsi_maker *k)
{
    ls_machine *m = k->m;
    double *room = ls_alloc(LS_MEM_CLI, sizeof *room * UNEVEN_MAX);
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
    m->exchanging = exchanging(k);
    LS_TRY(make_uneven(k, room));
out:
    ls_free(room);
    return st;
}

/* -- steps ------------------------------------------------------------------------------------------------
 */

/* Steps of a file over their median, without the first ones, in which a run still settles. */
static size_t relative_steps(const json_t *steps, double *to)
{
    const size_t all = json_array_size(steps), first = all / 20 > 2 ? all / 20 : 2;
    size_t n = 0;
    double median;

    for (size_t i = first; i < all; i++) {
        const double s = json_number_value(json_array_get(steps, i));
        if (s > 0 && s < 1e9) to[n++] = s;
    }
    if (n == 0) return 0;
    qsort(to, n, sizeof *to, by_size);
    median = ls_quantile_sorted(to, n, 0.5);
    for (size_t i = 0; i < n; i++) to[i] = fmin(fmax(to[i] / median, 0.01), 100); /* as files have it */
    return n;
}

/* Of files with `beside` others, or with the fewest ranks: percentiles, all 1 where there are too few steps.
 */
static ls_status find_jitter(const lsi_maker *k, int32_t beside, double out[LS_JITTER_N])
{
    size_t most = 1, n = 0;
    double *all;

    for (int i = 0; i < LS_JITTER_N; i++) out[i] = 1;
    for (int i = 0; i < k->n_files; i++) most += json_array_size(json_object_get(k->files[i].o, "steps_s"));
    all = ls_alloc(LS_MEM_CLI, sizeof *all * most);
    if (all == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for %zu steps", most);
    for (int i = 0; i < k->n_files; i++)
        if (beside > 0 ? k->files[i].beside == beside : k->files[i].company == k->fewest)
            n += relative_steps(json_object_get(k->files[i].o, "steps_s"), all + n);
    qsort(all, n, sizeof *all, by_size);
    for (int i = 0; n >= STEPS_LEAST && i < LS_JITTER_N; i++)
        out[i] = ls_quantile_sorted(all, n, i / 100.0) / ls_quantile_sorted(all, n, 0.5);
    ls_free(all);
    return LS_OK;
}

ls_status lsi_make_jitter(lsi_maker *k)
{
    int32_t most = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < k->n_files; i++)
        if (k->files[i].beside > most) most = k->files[i].beside;
    LS_TRY(find_jitter(k, 0, k->m->jitter));
    for (int i = 0; i < LS_JITTER_N; i++) k->m->crowded_jitter[i] = 1;
    if (most > 0) LS_TRY(find_jitter(k, most, k->m->crowded_jitter));
out:
    return st;
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
