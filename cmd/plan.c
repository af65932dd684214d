/* plan.c: `lockstep plan`: the compiled step, its arithmetic and its memory, without running it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "bench/flops.h"
#include "exec/peers.h"
#include "report_parts.h"
#include "train/layers.h"

/* A shape without spaces, as it stands in the table. */
static void shape_text(ls_shape s, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    if (s.rank == 0) snprintf(buf, size, "scalar");
    for (int i = 0; i < s.rank && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i ? "x" : "", (long long)s.dim[i]);
}

static void node_text(const ls_plan_node *n)
{
    char shape[96], op[48], flops[32], bytes[32];

    shape_text(n->shape, shape, sizeof shape);
    snprintf(op, sizeof op, "%s%s", n->op, n->backward ? "'" : "");
    printf("%-20s %-28s %-18s %-14s %10s %10s\n", op, n->scope, shape, n->impl != NULL ? n->impl : "",
           ls_text_si(n->flops, flops), ls_text_bytes(n->bytes, bytes));
}

static void node_json(const ls_plan_node *n)
{
    json_t *shape = json_array();

    for (int i = 0; i < n->shape.rank; i++) json_array_append_new(shape, json_integer(n->shape.dim[i]));
    cli_print_json_take(json_pack("{s:s, s:s, s:s, s:b, s:o, s:s, s:f, s:f}", "event", "node", "op", n->op,
                                  "layer", n->scope, "backward", n->backward, "shape", shape, "impl",
                                  n->impl != NULL ? n->impl : "", "flops", n->flops, "bytes", n->bytes));
}

static void print_nodes(const ls_plan *p, bool json)
{
    if (!json)
        printf("%-20s %-28s %-18s %-14s %10s %10s\n", "op (' backward)", "layer", "shape", "implementation",
               "FLOP", "bytes");
    for (int i = 0; i < ls_plan_node_count(p); i++) {
        ls_plan_node n = ls_plan_node_at(p, i);
        if (json)
            node_json(&n);
        else
            node_text(&n);
    }
}

/* The same table, or object, that `train` begins with. */
static ls_status print_layers(const cli_experiment *x, bool json, ls_err *err)
{
    ls_layers layers = {0};
    ls_text text = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_layers_of(&layers, x->step, x->plan, json ? 0 : LS_LAYER_ROWS, err));
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

static json_t *buckets_json(const cli_experiment *x)
{
    json_t *a = json_array();

    for (int i = 0; x->peers != NULL && i < ls_peers_buckets(x->peers); i++)
        json_array_append_new(a, json_integer((json_int_t)ls_peers_bucket_bytes(x->peers, i)));
    return a;
}

static void print_json(const cli_experiment *x)
{
    char hash[24];

    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)ls_plan_hash(x->plan));
    cli_print_json_take(json_pack(
        "{s:s, s:s, s:i, s:I, s:o, s:I, s:I, s:f, s:f, s:o, s:o, s:s}", "event", "plan", "experiment",
        x->name, "ranks", x->ranks, "batch_per_rank", (json_int_t)x->batch, "parameters",
        report_params_json(x), "trained",
        (json_int_t)(ls_step_count_params(x->step, "*") - ls_step_count_frozen(x->step)), "frozen",
        (json_int_t)ls_step_count_frozen(x->step), "flops_per_sample",
        ls_plan_product_flops(x->plan) / (double)x->batch, "all_flops_per_sample",
        ls_plan_flops(x->plan) / (double)x->batch, "planned_bytes",
        report_memory_json(ls_plan_memory_of(x->plan)), "buckets", buckets_json(x), "plan_hash", hash));
}

static void print_buckets(const cli_experiment *x)
{
    char a[32];

    if (x->peers == NULL) return;
    printf("exchange      %d ranks, in the order of the backward pass:", x->ranks);
    for (int i = 0; i < ls_peers_buckets(x->peers); i++)
        printf("%s%s", i > 0 ? ", " : " ", ls_text_bytes((double)ls_peers_bucket_bytes(x->peers, i), a));
    printf("\n");
}

static void print_frozen(const cli_experiment *x)
{
    const int64_t frozen = ls_step_count_frozen(x->step);
    char a[32], b[32];

    if (frozen == 0) return;
    printf("trained       %s of them; %s are frozen\n",
           ls_text_count(ls_step_count_params(x->step, "*") - frozen, a), ls_text_count(frozen, b));
}

static void print_text(const cli_experiment *x)
{
    double n = (double)x->batch;
    char a[32], b[32];

    printf("\nmodel         %s: %s\n", x->trial->name, x->trial->about);
    printf("step          %d nodes, batch %lld\n", ls_plan_node_count(x->plan), (long long)x->batch);
    report_params_text(x);
    print_frozen(x);
    printf("FLOP/sample   %s in products and convolutions, %s in all\n",
           ls_text_si(ls_plan_product_flops(x->plan) / n, a), ls_text_si(ls_plan_flops(x->plan) / n, b));
    report_memory_text(ls_plan_memory_of(x->plan));
    print_buckets(x);
    printf("plan hash     %016llx\n", (unsigned long long)ls_plan_hash(x->plan));
}

int cli_plan(const cli_args *args)
{
    cli_experiment x = {0};
    ls_err err = {0};
    ls_status st;
    int rc = CLI_DONE;

    /* A listing must not take long: without being asked, take each op's first kernel. */
    if (!args->tune) setenv("LOCKSTEP_TUNE", "off", 0);
    st = args->list_settings ? cli_experiment_configure(&x, args, &err) : cli_experiment_open(&x, args, &err);
    if (st == LS_OK && !args->list_settings) {
        print_nodes(x.plan, args->json);
        st = print_layers(&x, args->json, &err);
    }
    if (st != LS_OK) {
        rc = cli_fail("plan", &err);
    } else if (args->list_settings) {
        report_settings(&x.experiment, args->json);
    } else if (args->json) {
        print_json(&x);
    } else {
        print_text(&x);
    }
    cli_experiment_release(&x);
    return rc;
}
