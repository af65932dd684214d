/* profile.c: where the time of a step goes. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

#define SHOWN_NODES 20

typedef struct kind {
    const char *op;
    int nodes;
    double seconds, flops, bytes;
} kind;

/* A node of one of the step's plans, in all its runs of a step. */
typedef struct timed_node {
    const ls_doc_node *n;
    double seconds, flops, bytes;
} timed_node;

typedef struct tables {
    timed_node *nodes;
    int n_nodes;
    kind *kinds;
    int n_kinds;
    profile_result r;
} tables;

static int slowest_first(double a, double b)
{
    return a > b ? -1 : a < b;
}

static int by_kind_time(const void *a, const void *b)
{
    return slowest_first(((const kind *)a)->seconds, ((const kind *)b)->seconds);
}

static int by_node_time(const void *a, const void *b)
{
    return slowest_first(((const timed_node *)a)->seconds, ((const timed_node *)b)->seconds);
}

/* Sums the nodes by op. */
static void gather(tables *t)
{
    for (int i = 0; i < t->n_nodes; i++) {
        const timed_node *n = &t->nodes[i];
        int k = 0;
        while (k < t->n_kinds && strcmp(t->kinds[k].op, n->n->op) != 0) k++;
        if (k == t->n_kinds) t->kinds[t->n_kinds++] = (kind){.op = n->n->op};
        t->kinds[k].nodes++;
        t->kinds[k].seconds += n->seconds;
        t->kinds[k].flops += n->flops;
        t->kinds[k].bytes += n->bytes;
    }
    qsort(t->kinds, (size_t)t->n_kinds, sizeof *t->kinds, by_kind_time);
    qsort(t->nodes, (size_t)t->n_nodes, sizeof *t->nodes, by_node_time);
}

/* -- text -------------------------------------------------------------------------------------------------
 */

static void print_row(const char *name, const char *layer, double seconds, double total, double flops,
                      double bytes)
{
    char a[32], b[32];

    printf("%-20s %-32s %10.3f %6.1f %% %10s %12s\n", name, layer, seconds * 1e3, 100 * seconds / total,
           ls_text_si(seconds > 0 ? flops / seconds : 0, a),
           ls_text_bytes(seconds > 0 ? bytes / seconds : 0, b));
}

/* What is no node. */
static void print_part(const char *name, double seconds, double total)
{
    printf("%-53s %10.3f %6.1f %%\n", name, seconds * 1e3, 100 * seconds / total);
}

static void print_text(const tables *t)
{
    const double total = t->r.sums.step;
    char all[LS_UNITS_TEXT], one[LS_UNITS_TEXT];

    printf("%-20s %-32s %10s %8s %10s %12s\n", "op", "", "ms", "share", "FLOP/s", "bytes/s");
    for (int i = 0; i < t->n_kinds; i++) {
        const kind *k = &t->kinds[i];
        char count[32];
        snprintf(count, sizeof count, "%d node%s", k->nodes, k->nodes == 1 ? "" : "s");
        print_row(k->op, count, k->seconds, total, k->flops, k->bytes);
    }
    print_part("(exchanges on their way, between nodes)", t->r.sums.progress, total);
    print_part("(around the plans: input, metrics)", t->r.sums.rest, total);
    printf("a step with these clocks takes %s, one without %s (in turns)\n\n", ls_units_seconds(total, all),
           ls_units_seconds(t->r.plain_s, one));
    printf("slowest nodes (' backward)\n");
    for (int i = 0; i < t->n_nodes && i < SHOWN_NODES; i++) {
        const ls_doc_node *n = t->nodes[i].n;
        char op[64], layer[51], where[96];
        snprintf(op, sizeof op, "%s%s", n->op, n->backward ? "'" : "");
        ls_text_fit(layer, sizeof layer, "%s", n->layer);
        ls_text_fit(where, sizeof where, "%s%s%.30s", layer, n->impl[0] != '\0' ? " " : "", n->impl);
        print_row(op, where, t->nodes[i].seconds, total, t->nodes[i].flops, t->nodes[i].bytes);
    }
    printf("\n");
}

/* -- JSON -------------------------------------------------------------------------------------------------
 */

static void print_json(const tables *t)
{
    json_t *by_op = json_array(), *by_node = json_array();

    for (int i = 0; i < t->n_kinds; i++) {
        const kind *k = &t->kinds[i];
        json_array_append_new(by_op,
                              json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "op", k->op, "nodes", k->nodes,
                                        "seconds", k->seconds, "share", k->seconds / t->r.sums.step, "flops",
                                        k->flops, "bytes", k->bytes));
    }
    for (int i = 0; i < t->n_nodes; i++) {
        const ls_doc_node *n = t->nodes[i].n;
        json_array_append_new(by_node, json_pack("{s:i, s:s, s:s, s:s, s:b, s:f, s:f, s:f}", "id", n->id,
                                                 "op", n->op, "layer", n->layer, "impl", n->impl, "backward",
                                                 n->backward, "seconds", t->nodes[i].seconds, "flops",
                                                 t->nodes[i].flops, "bytes", t->nodes[i].bytes));
    }
    cli_print_json_take(json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "event", "profile", "seconds",
                                  t->r.sums.nodes, "exchange_s", t->r.sums.progress, "rest_s", t->r.sums.rest,
                                  "step_s", t->r.sums.step, "plain_step_s", t->r.plain_s, "ops", by_op,
                                  "nodes", by_node));
}

/* -- measuring --------------------------------------------------------------------------------------------
 */

/* About three seconds; fewer than three steps have no middle half. */
int profile_steps(double step_s)
{
    double n = 3.0 / (step_s > 1e-6 ? step_s : 1e-6);

    return n < 3 ? 3 : n > PROFILE_STEPS_MAX ? PROFILE_STEPS_MAX : (int)n;
}

static ls_status take_step(ls_rehearsal *x, ls_profile *f, double *seconds, ls_err *err)
{
    const double begun = ls_clock_seconds();
    bool last = false;
    ls_status st;

    x->stepper.profile = f;
    st = ls_rehearsal_step(x, &last, err);
    x->stepper.profile = NULL;
    *seconds = ls_clock_seconds() - begun;
    return st;
}

ls_status profile_take(ls_rehearsal *x, double step_s, profile_result *r, ls_err *err)
{
    const int steps = profile_steps(step_s);
    ls_profile *with = NULL, *without = NULL;
    ls_status st = LS_OK;

    x->stepper.ahead = false; /* a step with clocks is over when it returns; so is one without */
    LS_TRY(ls_profile_create(&with, steps, err));
    LS_TRY(ls_profile_create(&without, steps, err));
    for (int i = 0; i < steps; i++) { /* in turns, so that what disturbs one disturbs the other */
        double seconds;
        LS_TRY(take_step(x, NULL, &seconds, err));
        ls_profile_step(without, seconds);
        LS_TRY(take_step(x, with, &seconds, err));
        ls_profile_step(with, seconds);
    }
    LS_TRY(ls_rehearsal_rest(x, err)); /* nothing of it is left on its way */
    r->sums = ls_profile_conclude(with);
    r->plain_s = ls_profile_conclude(without).step;
out:
    ls_profile_destroy(with);
    ls_profile_destroy(without);
    return st;
}

static ls_status fill(tables *t, const ls_documents *d, ls_err *err)
{
    size_t n = 1;

    for (int i = 0; i < d->n; i++) n += (size_t)d->of[i].n_nodes;
    t->nodes = ls_alloc(LS_MEM_CLI, sizeof *t->nodes * n);
    t->kinds = ls_alloc(LS_MEM_CLI, sizeof *t->kinds * n);
    if (t->nodes == NULL || t->kinds == NULL) return ls_fail(err, LS_NOMEM, "profile: no memory");
    for (int i = 0; i < d->n; i++)
        for (int32_t k = 0; k < d->of[i].n_nodes; k++) {
            const ls_doc_node *node = &d->of[i].nodes[k];
            const double runs = (double)d->of[i].runs;
            t->nodes[t->n_nodes++] =
                (timed_node){node, runs * node->seconds, runs * node->flops, runs * node->bytes};
        }
    gather(t);
    return LS_OK;
}

ls_status profile_print(ls_rehearsal *x, bool json, double step_s, ls_err *err)
{
    tables t = {0};
    ls_documents d = {.n = 0};
    ls_status st = LS_OK;

    LS_TRY(profile_take(x, step_s, &t.r, err));
    if (x->session.rank != 0) goto out;
    LS_TRY(ls_documents_make(&d, &x->session, x->update.samples / x->update.global, err));
    LS_TRY(fill(&t, &d, err));
    if (json)
        print_json(&t);
    else
        print_text(&t);
out:
    ls_free(t.nodes);
    ls_free(t.kinds);
    ls_documents_release(&d);
    return st;
}
