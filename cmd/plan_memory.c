/* plan_memory.c: `lockstep plan --strategy all -n 1..1024`: what a rank takes, by kind, for numbers of ranks
 * and strategies; whether it fits, and the largest batch that does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/text.h"
#include "plan.h"
#include "plan_memory.h"
#include "report_parts.h"
#include "train/alternatives.h"
#include "train/limit.h"

/* -- the question -----------------------------------------------------------------------------------------
 */

enum { COUNTS_MAX = 64, BATCH_MAX = 1 << 24 };

ls_status cli_plan_counts(cli_args *args, ls_err *err)
{
    int counts[COUNTS_MAX], n = 0;
    ls_status st = LS_OK;

    if (args->rank_counts == NULL) return LS_OK;
    LS_TRY(cli_counts("-n", args->rank_counts, counts, COUNTS_MAX, &n, err));
    if (n == 1) args->ranks = counts[0];
out:
    return st;
}

bool plan_memory_wanted(const cli_args *args)
{
    return args->strategy != NULL || (args->rank_counts != NULL && args->ranks == 0);
}

ls_status plan_memory_check(const cli_args *args, ls_err *err)
{
    const char *other = args->graph != NULL   ? "--graph"
                        : args->passes        ? "--passes"
                        : args->list_settings ? "--settings"
                                              : NULL;

    if (!plan_memory_wanted(args)) {
        if (args->out == NULL) return LS_OK;
        return ls_fail(err, LS_INVALID,
                       "--out is for the table of memory: --strategy all, or -n with several numbers");
    }
    if (other == NULL) return LS_OK;
    return ls_fail(err, LS_INVALID, "%s shows one plan, and %s asks for a table of several: choose one",
                   other, args->strategy != NULL ? "--strategy" : "-n with several numbers");
}

/* -- the answer -------------------------------------------------------------------------------------------
 */

static ls_status fill_row(plan_memory_row *r, const ls_alternative *way, const plan_memory_table *t,
                          ls_err *err)
{
    ls_outline x = {0};
    ls_status st = LS_OK;

    st = ls_alternative_open(way, &x, err);
    if (st == LS_INVALID ||
        st == LS_UNSUPPORTED) { /* of this row alone: a strategy that cannot be had there */
        ls_text_fit(r->why, sizeof r->why, "%s", err->text);
        *err = (ls_err){0};
        st = LS_OK;
        goto out;
    }
    if (st != LS_OK) goto out;
    r->memory = ls_outline_memory(&x);
    r->staging = ls_outline_staging(&x);
    r->recomputed = x.recompute.n_chosen;
    r->units = x.recompute.n_units;
    r->guessed = x.dev->guessed;
    if (t->limit > 0) {
        size_t bytes;
        r->largest = ls_alternative_largest(way, t->limit, BATCH_MAX, &bytes);
        r->widest = ls_alternative_widest(way, t->limit);
    }
out:
    ls_outline_release(&x);
    return st;
}

static ls_status fill(plan_memory_table *t, const cli_args *args, cli_experiment *x, ls_err *err)
{
    int counts[COUNTS_MAX], n = 1;
    char strategies[256];
    ls_status st = LS_OK;

    counts[0] = x->ranks;
    if (args->rank_counts != NULL) LS_TRY(cli_counts("-n", args->rank_counts, counts, COUNTS_MAX, &n, err));
    LS_TRY(cli_strategies(x->cfg, args->strategy, strategies, sizeof strategies, err));
    for (int i = 0; i < n; i++) {
        const char *list = strategies;
        char name[sizeof t->rows->strategy];
        while (ls_alternative_next(&list, name, sizeof name)) {
            const ls_alternative way = {.trial = x->trial,
                                        .cfg = x->cfg,
                                        .how = {.ranks = counts[i],
                                                .here = args->ranks_per_node,
                                                .threads = args->threads,
                                                .untimed = !args->tune},
                                        .strategy = name};
            plan_memory_row *r;
            if (!LS_GROW(LS_MEM_CLI, t->rows, t->n + 1, t->cap)) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
            r = &t->rows[t->n++];
            *r = (plan_memory_row){.ranks = counts[i], .batch = ls_alternative_share(&way)};
            if (r->batch == 0) r->batch = t->batch;
            memcpy(r->strategy, name, sizeof name);
            LS_TRY(fill_row(r, &way, t, err));
        }
    }
out:
    return st;
}

/* -- saying it --------------------------------------------------------------------------------------------
 */

static void print_row(const plan_memory_table *t, const plan_memory_row *r)
{
    const ls_plan_memory *m = &r->memory;
    const size_t kinds[] = {m->weights, m->gradients, m->optimizer, m->activations,
                            m->scratch, m->comm,      r->staging,   m->total};
    char buf[32];

    printf("%6d %-9s", r->ranks, r->strategy);
    if (r->why[0] != '\0') {
        printf(" %s\n", r->why);
        return;
    }
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        printf(" %10s", ls_text_bytes((double)kinds[k], buf));
    if (t->limit > 0) printf(" %5s", m->total <= t->limit ? "yes" : "no");
    if (t->limit > 0 && r->largest < BATCH_MAX)
        printf(" %9s", r->largest > 0 ? ls_text_count(r->largest, buf) : "none");
    if (t->limit > 0 && r->largest == BATCH_MAX) printf(" %9s", "any");
    if (t->limit > 0 && r->widest >= 0)
        printf(" %9s", r->widest > 0 ? ls_text_count(r->widest, buf) : "none");
    if (t->limit > 0 && r->widest < 0) printf(" %9s", "-");
    if (r->recomputed > 0) printf("  %d of %d units computed again", r->recomputed, r->units);
    printf("\n");
}

static void print_text(const plan_memory_table *t, int ranks_per_node)
{
    char limit[32];
    int guessed = 0;

    printf("memory of a rank, %s, batch %lld %s%s%s%s\n", t->name,
           (long long)(t->global > 0 ? t->global : t->batch), t->global > 0 ? "of all ranks" : "per rank",
           t->limit > 0 ? ", of at most " : "", t->limit > 0 ? ls_text_bytes((double)t->limit, limit) : "",
           ranks_per_node == 0 ? "; all ranks on one machine; --ranks-per-node R changes that" : "");
    printf("%6s %-9s %10s %10s %10s %10s %10s %10s %10s %10s%s\n", "ranks", "strategy", "weights",
           "gradients", "optimizer", "activation", "workspace", "exchange", "staging", "total",
           t->limit > 0 ? "  fits     batch     width" : "");
    for (int i = 0; i < t->n; i++) {
        print_row(t, &t->rows[i]);
        if (t->rows[i].guessed > guessed) guessed = t->rows[i].guessed;
    }
    if (t->limit > 0)
        printf("batch, width: the largest that fit, each alone%s\n",
               t->n > 0 && t->rows[0].widest < 0 ? "; the model has no setting model.width" : "");
    if (guessed > 0)
        printf("kernels: %d problem%s never timed on this machine: their workspace is a guess; --tune times "
               "them\n",
               guessed, guessed == 1 ? " was" : "s were");
}

static json_t *row_json(const plan_memory_table *t, const plan_memory_row *r)
{
    json_t *o = json_pack("{s:i, s:s}", "ranks", r->ranks, "strategy", r->strategy);

    if (r->why[0] != '\0') {
        json_object_set_new(o, "error", json_string(r->why));
        return o;
    }
    json_object_set_new(o, "batch_per_rank", json_integer((json_int_t)r->batch));
    json_object_set_new(o, "planned_bytes", report_memory_json(r->memory));
    json_object_set_new(o, "staging_bytes", json_integer((json_int_t)r->staging));
    json_object_set_new(o, "recomputed_units", json_integer(r->recomputed));
    json_object_set_new(o, "guessed_kernels", json_integer(r->guessed));
    if (t->limit == 0) return o;
    json_object_set_new(o, "fits", json_boolean(r->memory.total <= t->limit));
    json_object_set_new(o, "largest_batch", json_integer((json_int_t)r->largest));
    if (r->widest >= 0) json_object_set_new(o, "largest_width", json_integer((json_int_t)r->widest));
    return o;
}

static void print_json(const plan_memory_table *t, const char *page)
{
    json_t *rows = json_array(), *o;

    for (int i = 0; i < t->n; i++) json_array_append_new(rows, row_json(t, &t->rows[i]));
    o = json_pack("{s:s, s:s, s:I, s:o}", "event", "plan-memory", "experiment", t->name, "batch_per_rank",
                  (json_int_t)t->batch, "rows", rows);
    if (t->limit > 0) json_object_set_new(o, "memory_limit", json_integer((json_int_t)t->limit));
    if (page[0] != '\0') json_object_set_new(o, "report", json_string(page));
    cli_print_json_take(o);
}

/* A row that cannot be had is one answer among others; a table without any other is none. */
static ls_status check_any(const plan_memory_table *t, ls_err *err)
{
    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] == '\0') return LS_OK;
    return t->n == 0 ? LS_OK : ls_fail(err, LS_INVALID, "%s", t->rows[0].why);
}

int plan_memory(const cli_args *args)
{
    cli_experiment x = {0};
    plan_memory_table t = {0};
    char page[LS_PATH_MAX] = "";
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(cli_experiment_configure(&x, args, &err));
    LS_TRY(cli_device_check(args, ls_config_text(x.cfg, "device"), &err));
    LS_TRY(ls_memory_limit(x.cfg, &t.limit, &err));
    t.name = x.name;
    t.batch = ls_config_int(x.cfg, "batch.per_rank");
    t.global = ls_config_int(x.cfg, "batch.global");
    LS_TRY(fill(&t, args, &x, &err));
    LS_TRY(check_any(&t, &err));
    if (args->out != NULL) LS_TRY(plan_memory_page(&t, args->out, page, sizeof page, &err));
    if (args->json)
        print_json(&t, page);
    else
        print_text(&t, args->ranks_per_node);
    if (!args->json && page[0] != '\0') printf("report        %s\n", page);
out:
    ls_free(t.rows);
    cli_experiment_release(&x);
    return st == LS_OK ? CLI_DONE : cli_fail("plan", &err);
}
