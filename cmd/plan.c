/* plan.c: `lockstep plan`: the compiled step, its arithmetic and its memory, without running it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/text.h"
#include "bench/flops.h"
#include "exec/memory.h"
#include "exec/results.h"
#include "plan.h"
#include "report_parts.h"
#include "train/layers.h"
#include "train/limit.h"
#include "train/placement.h"

/* A shape without spaces, as it stands in the table. */
static void shape_text(ls_shape s, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    if (s.rank == 0) snprintf(buf, size, "scalar");
    for (int i = 0; i < s.rank && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i ? "x" : "", (long long)s.dim[i]);
}

static void print_node(const ls_document *d, const ls_doc_node *n)
{
    char shape[96], op[48], flops[32], bytes[32];

    shape_text(d->values[n->out[0]].shape, shape, sizeof shape);
    snprintf(op, sizeof op, "%s%s", n->op, n->backward ? "'" : "");
    printf("%-20s %-28s %-18s %-18s %10s %10s\n", op, n->layer, shape, n->impl, ls_text_si(n->flops, flops),
           ls_text_bytes(n->bytes, bytes));
}

/* Which of a step's plans it is. */
static void print_part(const cli_experiment *x, const ls_document *d)
{
    if (x->outline.n_plans == 1) return;
    printf("%s%s", d->stage == 0 && strcmp(d->part, "gradients") == 0 ? "" : "\n", d->part);
    if (x->outline.n_plans > 2) printf(", stage %d of %d", d->stage + 1, x->outline.n_plans / 2);
    if (d->runs > 1) printf(", %lld times", (long long)d->runs);
    printf("\n");
}

static void print_nodes(const ls_document *d)
{
    printf("%-20s %-28s %-18s %-18s %10s %10s\n", "op (' backward)", "layer", "shape", "implementation",
           "FLOP", "bytes");
    for (int32_t i = 0; i < d->n_nodes; i++) print_node(d, &d->nodes[i]);
}

/* How the plan was made. */
static void print_passes(const ls_document *d, bool json)
{
    json_t *list = json ? json_array() : NULL;

    if (!json) printf("\n%-14s %7s %7s %9s  %s\n", "pass", "nodes", "edges", "ms", "leaves");
    for (int32_t i = 0; i < d->n_passes; i++) {
        const ls_doc_pass *p = &d->passes[i];
        if (json)
            json_array_append_new(list,
                                  json_pack("{s:s, s:i, s:i, s:f}", "pass", p->name, "nodes", (int)p->nodes,
                                            "edges", (int)p->edges, "seconds", p->seconds));
        else
            printf("%-14s %7d %7d %9.3f  %s\n", p->name, (int)p->nodes, (int)p->edges, 1e3 * p->seconds,
                   p->leaves);
    }
    if (json) cli_print_json_take(json_pack("{s:s, s:o}", "event", "passes", "passes", list));
}

static void print_document(const cli_experiment *x, const ls_document *d)
{
    json_t *plans = json_array();

    for (int i = 0; i < x->outline.n_plans; i++) json_array_append_new(plans, ls_document_json(&d[i]));
    cli_print_json_take(json_pack("{s:s, s:i, s:s, s:i, s:s, s:o}", "event", "document", "format",
                                  LS_PLANS_FORMAT, "experiment", x->name, "ranks", x->ranks, "device",
                                  x->outline.dev->backend->name, "plans", plans));
}

/* The same table, or object, that `train` begins with. */
static ls_status print_layers(const cli_experiment *x, bool json, ls_err *err)
{
    ls_layers layers = {0};
    ls_text text = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_layers_of(&layers, x->outline.step, x->outline.plans[0].plan, json ? 0 : LS_LAYER_ROWS, err));
    if (json) {
        cli_print_json_take(ls_layers_json(&layers));
    } else {
        LS_TRY(ls_layers_table(&layers, &text, err));
        printf("\n%s", text.data);
    }
out:
    ls_text_release(&text);
    ls_layers_release(&layers);
    return st;
}

static json_t *buckets_json(const cli_experiment *x, const ls_document *d)
{
    json_t *a = json_array();

    /* Shards of one rank are added up as well, but nothing is exchanged. */
    for (int k = 0; x->ranks > 1 && k < x->outline.n_plans; k++)
        for (int32_t i = 0; i < d[k].n_collectives; i++)
            if (d[k].collectives[i].bucket >= 0)
                json_array_append_new(a, json_integer((json_int_t)d[k].collectives[i].bytes));
    return a;
}

/* Of a whole step, by sample; `all` with everything that is no product or convolution. */
static double flops_per_sample(const cli_experiment *x, const ls_document *d, bool all)
{
    double sum = 0;

    for (int k = 0; k < x->outline.n_plans; k++)
        sum += (double)d[k].runs * (all ? d[k].flops : ls_document_product_flops(&d[k]));
    return sum / (double)(d[0].runs * x->outline.batch);
}

/* NULL: nobody has asked for it. */
static json_t *recompute_json(const cli_experiment *x)
{
    const ls_recompute_choice *c = &x->outline.recompute;
    const double more = c->flops_kept > 0 ? ls_outline_flops(&x->outline) / c->flops_kept - 1 : 0;

    if (c->n_chosen == 0 && !c->by_limit) return NULL;
    return json_pack("{s:i, s:i, s:b, s:f, s:f, s:I}", "units", c->n_chosen, "of", c->n_units, "by_limit",
                     (int)c->by_limit, "extra_flops", more, "extra_time", c->extra_time, "bytes_kept",
                     (json_int_t)c->bytes_kept);
}

/* Of the plan that has the most. */
static ls_plan_layout layout_of(const cli_experiment *x)
{
    ls_plan_layout most = {0};

    for (int k = 0; k < x->outline.n_plans; k++) {
        const ls_plan_layout l = ls_memory_layout(x->outline.plans[k].plan);
        if (l.bytes > most.bytes) most = l;
    }
    return most;
}

static void print_json(const cli_experiment *x, const ls_document *d)
{
    char hash[24];

    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)d->hash);
    cli_print_json_take(json_pack(
        "{s:s, s:s, s:i, s:I, s:o, s:I, s:I, s:f, s:f, s:o, s:I, s:{s:I, s:I}, s:o, s:s, s:o*, s:i}", "event",
        "plan", "experiment", x->name, "ranks", x->ranks, "batch_per_rank",
        (json_int_t)ls_config_int(x->cfg, "batch.per_rank"), "parameters", report_params_json(x), "trained",
        (json_int_t)(ls_step_count_params(x->outline.step, "*") - ls_step_count_frozen(x->outline.step)),
        "frozen", (json_int_t)ls_step_count_frozen(x->outline.step), "flops_per_sample",
        flops_per_sample(x, d, false), "all_flops_per_sample", flops_per_sample(x, d, true), "planned_bytes",
        report_memory_json(ls_outline_memory(&x->outline)), "persistent_bytes",
        (json_int_t)ls_outline_persistent(&x->outline), "layout", "bytes", (json_int_t)layout_of(x).bytes,
        "live_bytes", (json_int_t)layout_of(x).live, "buckets", buckets_json(x, d), "plan_hash", hash,
        "recompute", recompute_json(x), "guessed_kernels", (int)x->outline.dev->guessed));
}

static void print_buckets(const cli_experiment *x, const ls_document *d)
{
    char a[32];
    int n = 0;

    if (x->ranks == 1) return;
    printf("exchange      %d ranks, in the order of the backward pass:", x->ranks);
    for (int k = 0; k < x->outline.n_plans; k++)
        for (int32_t i = 0; i < d[k].n_collectives; i++)
            if (d[k].collectives[i].bucket >= 0)
                printf("%s%s", n++ > 0 ? ", " : " ", ls_text_bytes((double)d[k].collectives[i].bytes, a));
    printf("\n");
}

/* What was chosen, and what follows from it. */
static void print_strategy(const cli_experiment *x)
{
    const ls_update u = ls_update_of(x->cfg, x->ranks);
    const ls_placement p = ls_placement_of(x->cfg, x->ranks, x->outline.here, u.shards);
    double sent = 0;
    bool carried = false;
    char a[32], text[256];

    if (x->ranks == 1) return;
    for (int k = 0; k < x->outline.n_plans; k++) {
        const ls_outline_plan *plan = &x->outline.plans[k];
        sent += (double)(u.shards > 0 ? 1 : plan->runs) * ls_plan_traffic(plan->plan);
        carried |= ls_plan_leaves_updates(plan->plan);
    }
    printf("strategy      %s: %s; a rank sends %s in a step%s\n",
           ls_config_choice(x->cfg, "parallel.strategy"), ls_placement_text(x->cfg, &p, text, sizeof text),
           ls_text_bytes(sent, a),
           carried ? "; updates are left to the next step, which makes them as it needs the weights" : "");
}

static void print_frozen(const cli_experiment *x)
{
    const int64_t frozen = ls_step_count_frozen(x->outline.step);
    char a[32], b[32];

    if (frozen == 0) return;
    printf("trained       %s of them; %s are frozen\n",
           ls_text_count(ls_step_count_params(x->outline.step, "*") - frozen, a), ls_text_count(frozen, b));
}

/* Which units are computed again, why, and what it costs. */
static void print_recompute(const cli_experiment *x)
{
    const ls_recompute_choice *c = &x->outline.recompute;
    const double flops = ls_outline_flops(&x->outline);
    char a[32], b[32];

    if (c->n_chosen == 0) {
        if (c->by_limit) printf("recompute     nothing: the step fits memory.limit without\n");
        return;
    }
    printf("recompute     %d of %d units, %s%s%s: %.1f %% more FLOPs, about %.1f %% more time", c->n_chosen,
           c->n_units, c->first, c->n_chosen > 1 ? " to " : "", c->n_chosen > 1 ? c->last : "",
           100 * (flops / c->flops_kept - 1), 100 * c->extra_time);
    printf("; %s instead of %s%s\n", ls_text_bytes((double)ls_outline_memory(&x->outline).total, a),
           ls_text_bytes((double)c->bytes_kept, b),
           c->by_limit ? ", by memory.limit, the fewest FLOPs for a byte first" : "");
}

static void print_layout(const cli_experiment *x)
{
    const ls_plan_layout l = layout_of(x);
    char a[32], b[32];

    if (l.live == 0) return;
    printf("layout        values take %s, of which %s are in use at a time: %.1f %% lost to gaps\n",
           ls_text_bytes((double)l.bytes, a), ls_text_bytes((double)l.live, b),
           100 * ((double)l.bytes / (double)l.live - 1));
}

static void print_limit(const cli_experiment *x)
{
    const size_t bytes = ls_outline_memory(&x->outline).total;
    size_t limit = 0;
    char a[32], b[32];

    if (ls_memory_limit(x->cfg, &limit, &(ls_err){0}) != LS_OK || limit == 0) return;
    printf("memory.limit  %s: ", ls_text_bytes((double)limit, a));
    if (bytes <= limit)
        printf("it fits, with %s left\n", ls_text_bytes((double)(limit - bytes), b));
    else
        printf("it does not fit; `train` would refuse it and say what does\n");
}

/* Kernels that were never timed here are those of a rule, which may take more or less than what training will
 * find to be the fastest. */
static void print_guessed(const cli_experiment *x)
{
    const int n = x->outline.dev->guessed;

    if (n > 0)
        printf("kernels       %d problem%s never timed on this machine: what memory they take is a guess; "
               "--tune times them\n",
               n, n == 1 ? " was" : "s were");
}

static void print_text(const cli_experiment *x, const ls_document *d)
{
    char a[32], b[32];
    int nodes = 0;

    for (int k = 0; k < x->outline.n_plans; k++) nodes += (int)d[k].n_nodes;
    printf("\nmodel         %s: %s\n", x->trial->name, x->trial->about);
    printf("step          %d nodes", nodes);
    if (x->outline.n_plans > 1) printf(" in %d plans", x->outline.n_plans);
    printf(", batch %lld\n", (long long)x->outline.batch);
    report_params_text(x);
    print_frozen(x);
    printf("FLOP/sample   %s in products and convolutions, %s in all\n",
           ls_text_si(flops_per_sample(x, d, false), a), ls_text_si(flops_per_sample(x, d, true), b));
    report_memory_text(ls_outline_memory(&x->outline));
    print_layout(x);
    print_recompute(x);
    print_limit(x);
    print_guessed(x);
    print_buckets(x, d);
    print_strategy(x);
    printf("plan hash     ");
    for (int k = 0; k < x->outline.n_plans; k++)
        printf("%s%016llx", k > 0 ? " " : "", (unsigned long long)d[k].hash);
    printf("\n");
}

ls_status plan_compile(cli_experiment *x, ls_document *d, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(cli_experiment_open(x, args, err));
    for (int i = 0; i < x->outline.n_plans; i++) {
        LS_TRY(ls_document_make(&d[i], x->outline.plans[i].plan, err));
        d[i].part = x->outline.plans[i].part;
        d[i].stage = x->outline.plans[i].stage;
        d[i].runs = x->outline.plans[i].runs;
        d[i].batch = x->outline.batch;
    }
out:
    return st;
}

static ls_status draw(const cli_args *args, const cli_experiment *x, const ls_document *d, ls_err *err)
{
    char title[256], name[101];

    /* Of several plans the first: most of the step's work. */
    ls_text_fit(name, sizeof name, "%s", x->name);
    snprintf(title, sizeof title, "%s, %s%d rank%s, batch %lld per %s", name,
             x->outline.n_plans > 1 ? "gradients, " : "", x->ranks, x->ranks == 1 ? "" : "s",
             (long long)x->outline.batch, ls_config_bool(x->cfg, "reproducible") ? "shard" : "rank");
    return plan_graph_write(args->graph, title, d, err);
}

/* A plan that was written before: the first of the file, drawn, with the times that it may have. */
static ls_status draw_file(const cli_args *args, ls_err *err)
{
    ls_document d = {0};
    int n_plans;
    ls_status st = LS_OK;

    if (args->graph == NULL || args->n_settings > 0 || args->passes)
        return ls_fail(
            err, LS_INVALID,
            "%s is a file with a plan: `lockstep plan %s --graph FILE.svg` draws it, --diff compares "
            "it; there is nothing to set in it, and it does not know how it was made",
            args->model, args->model);
    LS_TRY(plan_file_check(args->model, err));
    LS_TRY(plan_graph_check(args->graph, err));
    LS_TRY(ls_document_open(&d, args->model, 0, &n_plans, err));
    LS_TRY(plan_graph_write(args->graph, args->model, &d, err));
out:
    ls_document_release(&d);
    return st;
}

/* The listing, or its JSON, and the picture. */
static ls_status show(const cli_args *args, ls_err *err)
{
    cli_experiment x = {0};
    ls_document d[LS_OUTLINE_PLANS] = {{0}};
    ls_status st = LS_OK;

    if (args->graph != NULL) LS_TRY(plan_graph_check(args->graph, err));
    LS_TRY(plan_compile(&x, d, args, err));
    if (args->json) print_document(&x, d);
    for (int i = 0; !args->json && i < x.outline.n_plans; i++) {
        print_part(&x, &d[i]);
        print_nodes(&d[i]);
    }
    LS_TRY(print_layers(&x, args->json, err));
    /* Before the last line, which programs take for the result. */
    for (int i = 0; args->passes && i < x.outline.n_plans; i++) print_passes(&d[i], args->json);
    if (args->graph != NULL) LS_TRY(draw(args, &x, d, err));
    if (args->json)
        print_json(&x, d);
    else
        print_text(&x, d);
out:
    for (int i = 0; i < LS_OUTLINE_PLANS; i++) ls_document_release(&d[i]);
    cli_experiment_release(&x);
    return st;
}

static ls_status show_settings(const cli_args *args, ls_err *err)
{
    cli_experiment x = {0};
    const ls_status st = cli_experiment_configure(&x, args, err);

    if (st == LS_OK) report_settings(&x.experiment, args->json);
    cli_experiment_release(&x);
    return st;
}

ls_status cli_plan_check(const cli_args *args, ls_err *err)
{
    if (!args->compare_two) return plan_memory_check(args, err);
    if (args->strategy != NULL || args->out != NULL)
        return ls_fail(err, LS_INVALID, "--diff and %s: choose one",
                       args->out != NULL ? "--out" : "--strategy");
    if (args->graph != NULL || args->list_settings || args->passes)
        return ls_fail(err, LS_INVALID, "--diff and %s: choose one",
                       args->graph != NULL   ? "--graph"
                       : args->list_settings ? "--settings"
                                             : "--passes");
    /* -n and --device are settings of both sides, and no second side. */
    if (args->model == NULL || args->n_settings < 1 || args->settings[0] == args->ranks_setting ||
        args->settings[0] == args->device_setting || args->settings[0] == args->memory_setting)
        return ls_fail(
            err, LS_INVALID,
            "--diff takes two of: an experiment, a file of `lockstep plan --json`; or an experiment "
            "and a key=value in which the second plan differs");
    for (int i = 1; i < args->n_settings; i++)
        if (strchr(args->settings[i], '=') == NULL)
            return ls_fail(err, LS_INVALID, "\"%s\" is one word too many; settings are written key=value",
                           args->settings[i]);
    return LS_OK;
}

int cli_plan(const cli_args *args)
{
    ls_err err = {0};
    ls_status st;

    if (args->compare_two) return plan_diff(args);
    if (plan_memory_wanted(args)) return plan_memory(args);
    if (plan_is_file(args->model))
        st = draw_file(args, &err);
    else
        st = args->list_settings ? show_settings(args, &err) : show(args, &err);
    return st == LS_OK ? CLI_DONE : cli_fail("plan", &err);
}
