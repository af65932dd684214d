/* machine_exports.c: a machine from what `lockstep bench --export` has measured on it.
 *
 * Nodes come from the files with the fewest ranks (one, if there is such a file); what files of more ranks
 * say is in machine_company.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stats.h"
#include "plans/plans.h"
#include "predict/machine_exports_internal.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)
enum { FORMAT = 2, PLANS_MAX = 64 };

/* -- files ------------------------------------------------------------------------------------------------
 */

static void read_members(lsi_export *f, lsi_member *file)
{
    lsi_member result = *file, profile = *file;
    double step, plain, timed;

    result.o = json_object_get(f->o, "result");
    profile.o = json_object_get(f->o, "profile");
    f->experiment = lsi_member_text(&result, "experiment", true);
    f->device = lsi_member_text(&result, "device", true);
    f->ranks = lsi_member_whole(&result, "ranks", true, 1, 1 << 20);
    f->hosts = lsi_member_whole(&result, "hosts", true, 1, 1 << 20);
    f->beside = lsi_member_whole(&result, "beside", false, 0, 1 << 20);
    f->batch = lsi_member_number(&result, "batch_per_rank", true, 1, 1e9);
    f->threads = lsi_member_whole(&result, "threads", true, 1, 1 << 20);
    f->cores = lsi_member_whole(&result, "cores", true, 1, 1 << 20);
    f->flop_s = lsi_member_number(&result, "peak_flop_s", true, 1, 1e24) / fmax(1, f->ranks);
    f->bytes_s = lsi_member_number(&result, "peak_copy_b_s", true, 1, 1e24) / fmax(1, f->ranks);
    if (result.st != LS_OK) profile.st = result.st;
    step = lsi_member_number(&profile, "step_s", true, 1e-9, 1e9);
    plain = lsi_member_number(&profile, "plain_step_s", true, 1e-9, 1e9);
    f->rest_s = lsi_member_number(&profile, "rest_s", true, 0, 1e9);
    f->here = (f->ranks + f->hosts - 1) / (f->hosts > 0 ? f->hosts : 1) + f->beside;
    f->company = f->ranks + f->beside;
    f->clocks = step > 0 ? plain / step : 1;
    timed = json_number_value(json_object_get(json_object_get(result.o, "step_s"), "p50"));
    f->step_s = timed > 0 && timed < 1e9 ? timed : plain;
    /* Nodes are timed in a few steps, the median is one of many.  With others it has exchanges in it. */
    f->scale = f->ranks == 1 && step > 0 ? f->step_s / step : f->clocks;
    file->st = profile.st;
}

static ls_status read_file(lsi_maker *k, lsi_export *f, const char *path)
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

static ls_status check_alike(const lsi_maker *k)
{
    const lsi_export *a = &k->files[0];

    for (int i = 1; i < k->n_files; i++) {
        const lsi_export *b = &k->files[i];
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

static lsi_draft *find_draft(lsi_maker *k, const lsi_export *f, int plan, const ls_document *d, int32_t node)
{
    const ls_doc_node *n = &d->nodes[node];
    const int nth = nth_of(d, node);
    char attributes[LSI_ATTRIBUTES];
    int unused;
    lsi_draft *t;

    lsi_machine_attributes(n, attributes, &unused);
    for (int32_t i = 0; i < k->n_drafts; i++) {
        t = &k->drafts[i];
        if (t->nth == nth && t->plan == plan && t->n.backward == n->backward && strcmp(t->n.op, n->op) == 0 &&
            strcmp(t->n.layer, n->layer) == 0 && strcmp(t->n.attributes, attributes) == 0 &&
            strcmp(t->experiment, f->experiment) == 0)
            return t;
    }
    t = &k->drafts[k->n_drafts];
    *t = (lsi_draft){.n = {.op = ls_arena_strdup(k->m->arena, n->op),
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
static void add_point(lsi_draft *t, ls_machine_point p)
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

static ls_status add_nodes(lsi_maker *k, const lsi_export *f)
{
    for (int p = 0; p < f->n_plans; p++) {
        const ls_document *d = &f->plans[p];
        for (int32_t i = 0; i < d->n_nodes; i++) {
            const ls_doc_node *n = &d->nodes[i];
            char attributes[LSI_ATTRIBUTES];
            int pieces;
            lsi_draft *t;
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

static ls_status make_nodes(lsi_maker *k)
{
    size_t most = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < k->n_files; i++)
        for (int p = 0; p < k->files[i].n_plans; p++) most += (size_t)k->files[i].plans[p].n_nodes;
    k->drafts = ls_alloc(LS_MEM_CLI, sizeof *k->drafts * (most + 1));
    if (k->drafts == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    for (int i = 0; i < k->n_files; i++)
        if (k->files[i].company == k->fewest) LS_TRY(add_nodes(k, &k->files[i]));
    k->m->nodes = ls_arena_alloc(k->m->arena, sizeof *k->m->nodes * ((size_t)k->n_drafts + 1));
    if (k->m->nodes == NULL) return ls_fail(k->err, LS_NOMEM, "no memory for a machine");
    for (int32_t i = 0; i < k->n_drafts; i++) k->m->nodes[k->m->n_nodes++] = k->drafts[i].n;
out:
    return st;
}

/* -- all of it --------------------------------------------------------------------------------------------
 */

/* What lies around nodes, and how well they gave the step before they were scaled to it. */
static ls_status make_head(lsi_maker *k)
{
    ls_machine *m = k->m;
    const lsi_export *f = &k->files[0];
    const json_t *result = json_object_get(f->o, "result");
    const char *host = json_string_value(json_object_get(result, "host"));
    lsi_member file = {.o = result, .path = f->path, .arena = m->arena, .err = k->err};
    double rest = 0, off = 0, n = 0;

    for (int i = 0; i < k->n_files; i++) {
        const lsi_export *x = &k->files[i];
        if (x->here > m->ranks_per_node) m->ranks_per_node = x->here;
        m->flop_s = fmax(m->flop_s, x->flop_s);
        m->bytes_s = fmax(m->bytes_s, x->bytes_s);
        if (x->company != k->fewest) continue;
        rest += x->rest_s * x->scale;
        off += (x->clocks - 1) * (x->clocks - 1);
        n++;
    }
    m->rest_s = rest / n;
    /* At most as files have it, and far beyond what is of use. */
    m->error = fmin(hypot(sqrt(off / n), lsi_measured_error(k)), 2);
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

static ls_status make(lsi_maker *k, const char *const *paths)
{
    ls_status st = LS_OK;

    for (int i = 0; i < k->n_files; i++) {
        LS_TRY(read_file(k, &k->files[i], paths[i]));
        if (i == 0 || k->files[i].company < k->fewest) k->fewest = k->files[i].company;
    }
    LS_TRY(check_alike(k));
    LS_TRY(make_head(k));
    LS_TRY(make_nodes(k));
    LS_TRY(lsi_machine_rate(k->m, k->err));
    LS_TRY(lsi_make_crowding(k));
    LS_TRY(lsi_make_jitter(k));
out:
    return st;
}

ls_status ls_machine_from_exports(ls_machine *m, const char *const *paths, int n, ls_err *err)
{
    lsi_maker k = {.m = m, .n_files = n, .err = err};
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
