/* machine_exports.c: a machine from what `lockstep bench --export` has measured on it.
 *
 * Nodes come from the files with the fewest ranks (one, if there is such a file); files of more ranks on one
 * machine say how ranks slow one another, by the nodes that both have. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stats.h"
#include "plans/plans.h"
#include "predict/machine_internal.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)
enum { FORMAT = 2, STEPS_LEAST = 20, PLANS_MAX = 64 };

/* One file. */
typedef struct export_file {
    const char *path, *experiment, *device;
    json_t *o;
    ls_document *plans;
    int n_plans;
    int32_t ranks, here, threads, cores;
    double scale; /* a step without clocks over one with */
    double rest_s, flop_s, bytes_s;
} export_file;

/* A node while points are added. */
typedef struct draft {
    ls_machine_node n;
    const char *experiment;
    int plan, nth; /* how many of the same words came before in the plan */
    int seen[LS_MACHINE_POINTS];
} draft;

typedef struct maker {
    ls_machine *m;
    export_file *files;
    int n_files;
    int32_t fewest; /* ranks */
    draft *drafts;
    int32_t n_drafts;
    ls_err *err;
} maker;

/* -- files ------------------------------------------------------------------------------------------------
 */

static void read_members(export_file *f, lsi_member *file)
{
    lsi_member result = *file, profile = *file;
    double step, plain;
    int32_t hosts;

    result.o = json_object_get(f->o, "result");
    profile.o = json_object_get(f->o, "profile");
    f->experiment = lsi_member_text(&result, "experiment", true);
    f->device = lsi_member_text(&result, "device", true);
    f->ranks = lsi_member_whole(&result, "ranks", true, 1, 1 << 20);
    hosts = lsi_member_whole(&result, "hosts", true, 1, 1 << 20);
    f->threads = lsi_member_whole(&result, "threads", true, 1, 1 << 20);
    f->cores = lsi_member_whole(&result, "cores", true, 1, 1 << 20);
    f->flop_s = lsi_member_number(&result, "peak_flop_s", true, 1, 1e24) / fmax(1, f->ranks);
    f->bytes_s = lsi_member_number(&result, "peak_copy_b_s", true, 1, 1e24) / fmax(1, f->ranks);
    if (result.st != LS_OK) profile.st = result.st;
    step = lsi_member_number(&profile, "step_s", true, 1e-9, 1e9);
    plain = lsi_member_number(&profile, "plain_step_s", true, 1e-9, 1e9);
    f->rest_s = lsi_member_number(&profile, "rest_s", true, 0, 1e9);
    f->here = (f->ranks + hosts - 1) / (hosts > 0 ? hosts : 1);
    f->scale = step > 0 ? plain / step : 1;
    file->st = profile.st;
}

static ls_status read_file(maker *k, export_file *f, const char *path)
{
    lsi_member file = {.path = path, .arena = k->m->arena, .err = k->err};
    ls_err why = {0};
    int n = 1;
    double timed = 0;

    f->path = path;
    if (ls_json_read(&f->o, path, FILE_MAX_BYTES, &why) != LS_OK)
        return ls_fail(k->err, LS_INVALID, "%s", why.text);
    file.o = f->o;
    if (strcmp(lsi_member_text(&file, "event", false), "bench-export") != 0)
        return lsi_member_refuse(&file, "it is no file of `lockstep bench --export`");
    if (lsi_member_whole(&file, "format", true, 0, INT32_MAX) != FORMAT)
        return lsi_member_refuse(
            &file, "its format is not %d; measure it anew with `lockstep bench --export`", FORMAT);
    read_members(f, &file);
    if (file.st != LS_OK) return file.st;
    f->plans = ls_arena_alloc(k->m->arena, sizeof *f->plans * PLANS_MAX);
    if (f->plans == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    for (; f->n_plans < n && f->n_plans < PLANS_MAX; f->n_plans++) {
        ls_document *d = &f->plans[f->n_plans];
        if (ls_document_open(d, path, f->n_plans, &n, &why) != LS_OK) {
            f->n_plans++; /* is released, too */
            return ls_fail(k->err, why.status == LS_NOMEM ? LS_NOMEM : LS_INVALID, "%s", why.text);
        }
        for (int32_t i = 0; i < d->n_nodes; i++) timed += d->nodes[i].seconds;
    }
    return timed > 0 ? LS_OK : lsi_member_refuse(&file, "no node of it has a time; measure it anew");
}

static ls_status check_alike(const maker *k)
{
    const export_file *a = &k->files[0];

    for (int i = 1; i < k->n_files; i++) {
        const export_file *b = &k->files[i];
        if (strcmp(a->device, b->device) != 0)
            return ls_fail(k->err, LS_INVALID,
                           "%s is of device %s and %s of %s: a machine has one kind of rank; make a file of "
                           "each",
                           a->path, a->device, b->path, b->device);
        if (a->threads != b->threads)
            return ls_fail(k->err, LS_INVALID,
                           "%s was measured with %d threads a rank and %s with %d: a machine has one kind of "
                           "rank; make a file of each",
                           a->path, (int)a->threads, b->path, (int)b->threads);
    }
    return LS_OK;
}

/* -- nodes ------------------------------------------------------------------------------------------------
 */

static bool same_words(const ls_doc_node *a, const ls_doc_node *b)
{
    char x[LSI_ATTRIBUTES], y[LSI_ATTRIBUTES];
    int unused;

    return a->backward == b->backward && strcmp(a->op, b->op) == 0 && strcmp(a->layer, b->layer) == 0 &&
           strcmp(lsi_machine_attributes(a, x, &unused), lsi_machine_attributes(b, y, &unused)) == 0;
}

static int nth_of(const ls_document *d, int32_t node)
{
    int nth = 0;

    for (int32_t i = 0; i < node; i++) nth += same_words(&d->nodes[i], &d->nodes[node]);
    return nth;
}

static draft *find_draft(maker *k, const export_file *f, int plan, const ls_document *d, int32_t node)
{
    const ls_doc_node *n = &d->nodes[node];
    const int nth = nth_of(d, node);
    char attributes[LSI_ATTRIBUTES];
    int unused;
    draft *t;

    lsi_machine_attributes(n, attributes, &unused);
    for (int32_t i = 0; i < k->n_drafts; i++) {
        t = &k->drafts[i];
        if (t->nth == nth && t->plan == plan && t->n.backward == n->backward && strcmp(t->n.op, n->op) == 0 &&
            strcmp(t->n.layer, n->layer) == 0 && strcmp(t->n.attributes, attributes) == 0 &&
            strcmp(t->experiment, f->experiment) == 0)
            return t;
    }
    t = &k->drafts[k->n_drafts];
    *t = (draft){.n = {.op = ls_arena_strdup(k->m->arena, n->op),
                       .attributes = ls_arena_strdup(k->m->arena, attributes),
                       .layer = ls_arena_strdup(k->m->arena, n->layer),
                       .backward = n->backward},
                 .experiment = f->experiment,
                 .plan = plan,
                 .nth = nth};
    if (t->n.op == NULL || t->n.attributes == NULL || t->n.layer == NULL) return NULL;
    k->n_drafts++;
    return t;
}

/* Points lie by rising batches; of a batch that was measured several times the mean counts. */
static void add_point(draft *t, ls_machine_point p)
{
    int at = 0;

    while (at < t->n.n_points && t->n.point[at].batch < p.batch) at++;
    if (at < t->n.n_points && t->n.point[at].batch == p.batch) {
        t->seen[at]++;
        t->n.point[at].seconds += (p.seconds - t->n.point[at].seconds) / t->seen[at];
        return;
    }
    if (t->n.n_points == LS_MACHINE_POINTS) return;
    for (int i = t->n.n_points++; i > at; i--) {
        t->n.point[i] = t->n.point[i - 1];
        t->seen[i] = t->seen[i - 1];
    }
    t->n.point[at] = p;
    t->seen[at] = 1;
}

static ls_status add_nodes(maker *k, const export_file *f)
{
    for (int p = 0; p < f->n_plans; p++) {
        const ls_document *d = &f->plans[p];
        for (int32_t i = 0; i < d->n_nodes; i++) {
            const ls_doc_node *n = &d->nodes[i];
            char attributes[LSI_ATTRIBUTES];
            int pieces;
            draft *t;
            if (lsi_is_collective(d, i)) continue;
            t = find_draft(k, f, p, d, i);
            if (t == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
            lsi_machine_attributes(n, attributes, &pieces);
            add_point(
                t, (ls_machine_point){(double)d->batch, n->seconds * f->scale * pieces, n->flops, n->bytes});
        }
    }
    return LS_OK;
}

static ls_status make_nodes(maker *k)
{
    size_t most = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < k->n_files; i++)
        for (int p = 0; p < k->files[i].n_plans; p++) most += (size_t)k->files[i].plans[p].n_nodes;
    k->drafts = ls_alloc(LS_MEM_CLI, sizeof *k->drafts * (most + 1));
    if (k->drafts == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    for (int i = 0; i < k->n_files; i++)
        if (k->files[i].ranks == k->fewest) LS_TRY(add_nodes(k, &k->files[i]));
    k->m->nodes = ls_arena_alloc(k->m->arena, sizeof *k->m->nodes * ((size_t)k->n_drafts + 1));
    if (k->m->nodes == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    for (int32_t i = 0; i < k->n_drafts; i++) k->m->nodes[k->m->n_nodes++] = k->drafts[i].n;
out:
    return st;
}

/* -- crowding ---------------------------------------------------------------------------------------------
 */

/* How much longer the nodes of a file of more ranks took than those of the fewest; 0: it has none in
 * common. */
static double crowded(const maker *k, const export_file *f)
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

static int by_ranks(const void *a, const void *b)
{
    return ((const ls_crowding *)a)->ranks - ((const ls_crowding *)b)->ranks;
}

/* Of several files with as many ranks the mean counts. */
static ls_status make_crowding(maker *k)
{
    ls_machine *m = k->m;

    m->crowding = ls_arena_alloc(m->arena, sizeof *m->crowding * ((size_t)k->n_files + 2));
    if (m->crowding == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    m->crowding[m->n_crowding++] = (ls_crowding){k->files[0].here, 1};
    for (int i = 0; i < k->n_files; i++)
        if (k->files[i].ranks == k->fewest) m->crowding[0].ranks = k->files[i].here;
    for (int i = 0; i < k->n_files; i++) {
        const export_file *f = &k->files[i];
        double sum = 0, n = 0;
        bool done = f->here <= m->crowding[0].ranks;
        for (int32_t c = 0; c < m->n_crowding; c++) done |= m->crowding[c].ranks == f->here;
        for (int j = i; j < k->n_files && !done; j++) {
            const double factor = k->files[j].here == f->here ? crowded(k, &k->files[j]) : 0;
            sum += factor;
            n += factor > 0;
        }
        if (n > 0) m->crowding[m->n_crowding++] = (ls_crowding){f->here, sum / n};
    }
    qsort(m->crowding, (size_t)m->n_crowding, sizeof *m->crowding, by_ranks);
    return LS_OK;
}

/* -- steps ------------------------------------------------------------------------------------------------
 */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

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

static ls_status make_jitter(maker *k)
{
    size_t most = 1, n = 0;
    double *all;

    for (int i = 0; i < LS_JITTER_N; i++) k->m->jitter[i] = 1;
    for (int i = 0; i < k->n_files; i++) most += json_array_size(json_object_get(k->files[i].o, "steps_s"));
    all = ls_alloc(LS_MEM_CLI, sizeof *all * most);
    if (all == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for %zu steps", most);
    for (int i = 0; i < k->n_files; i++)
        if (k->files[i].ranks == k->fewest)
            n += relative_steps(json_object_get(k->files[i].o, "steps_s"), all + n);
    qsort(all, n, sizeof *all, by_size);
    for (int i = 0; n >= STEPS_LEAST && i < LS_JITTER_N; i++)
        k->m->jitter[i] = ls_quantile_sorted(all, n, i / 100.0) / ls_quantile_sorted(all, n, 0.5);
    ls_free(all);
    return LS_OK;
}

/* -- all of it --------------------------------------------------------------------------------------------
 */

/* What lies around nodes, and how well they gave the step before they were scaled to it. */
static ls_status make_head(maker *k)
{
    ls_machine *m = k->m;
    const export_file *f = &k->files[0];
    const json_t *result = json_object_get(f->o, "result");
    const char *host = json_string_value(json_object_get(result, "host"));
    lsi_member file = {.o = result, .path = f->path, .arena = m->arena, .err = k->err};
    double rest = 0, off = 0, n = 0;

    for (int i = 0; i < k->n_files; i++) {
        const export_file *x = &k->files[i];
        if (x->here > m->ranks_per_node) m->ranks_per_node = x->here;
        m->flop_s = fmax(m->flop_s, x->flop_s);
        m->bytes_s = fmax(m->bytes_s, x->bytes_s);
        if (x->ranks != k->fewest) continue;
        rest += x->rest_s * x->scale;
        off += (x->scale - 1) * (x->scale - 1);
        n++;
    }
    m->rest_s = rest / n;
    m->error = fmin(sqrt(off / n), 2); /* as files have it, and far beyond what is of use */
    m->device = f->device;
    m->threads = f->threads;
    m->cores = f->cores;
    m->own_exchange = strncmp(f->device, "cuda", 4) != 0;
    m->name = host != NULL ? lsi_member_text(&file, "host", false) : "here";
    m->about = ls_arena_printf(m->arena, "%s, %d threads a rank, %d cores", m->device, (int)m->threads,
                               (int)m->cores);
    m->source = ls_arena_printf(m->arena, "%d files of `lockstep bench --export`, the first of %s",
                                k->n_files, f->experiment);
    if (file.st == LS_OK && (m->about == NULL || m->source == NULL))
        return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    return file.st;
}

static ls_status make(maker *k, const char *const *paths)
{
    ls_status st = LS_OK;

    for (int i = 0; i < k->n_files; i++) {
        LS_TRY(read_file(k, &k->files[i], paths[i]));
        if (i == 0 || k->files[i].ranks < k->fewest) k->fewest = k->files[i].ranks;
    }
    LS_TRY(check_alike(k));
    LS_TRY(make_head(k));
    LS_TRY(make_nodes(k));
    LS_TRY(lsi_machine_rate(k->m, k->err));
    LS_TRY(make_crowding(k));
    LS_TRY(make_jitter(k));
out:
    return st;
}

ls_status ls_machine_from_exports(ls_machine *m, const char *const *paths, int n, ls_err *err)
{
    maker k = {.m = m, .n_files = n, .err = err};
    ls_status st = LS_OK;

    *m = (ls_machine){0};
    if (n < 1)
        return ls_fail(err, LS_INVALID, "a machine is made from at least one file of `bench --export`");
    LS_TRY(ls_arena_create(&m->arena, LS_MEM_CLI, err));
    k.files = ls_alloc(LS_MEM_CLI, sizeof *k.files * (size_t)n);
    st = k.files != NULL ? make(&k, paths) : ls_fail(err, LS_NOMEM, "no memory for %d files", n);
    for (int i = 0; k.files != NULL && i < n; i++) {
        for (int p = 0; p < k.files[i].n_plans; p++) ls_document_release(&k.files[i].plans[p]);
        json_decref(k.files[i].o);
    }
out:
    ls_free(k.files);
    ls_free(k.drafts);
    return st;
}
