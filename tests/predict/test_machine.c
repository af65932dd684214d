/* test_machine.c: machines: files and their refusals, costs of nodes at any batch, rates, crowding, and what
 * is made of `bench --export` files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "check.h"
#include "plans/plans.h"
#include "plans_here.h"
#include "predict/machine_internal.h"

/* -- files ------------------------------------------------------------------------------------------------
 */

#define HEAD                                                                                                 \
    "\"format\":\"lockstep-machine\",\"version\":1,\"name\":\"a\",\"source\":\"b\",\"device\":\"cpu\","      \
    "\"threads\":2,\"flop_s\":1e12,\"bytes_s\":1e11,\"error\":0.1,\"own_exchange\":true"

static void refused(const char *text, const char *words)
{
    ls_machine m;
    ls_err err = {0};

    if (!CHECK_STATUS(ls_machine_parse(&m, text, strlen(text), "m.json", &err), LS_INVALID, &err) ||
        !CHECK_CONTAINS(err.text, words))
        printf("  %s\n", text);
    CHECK_CONTAINS(err.text, "m.json: ");
    ls_machine_release(&m);
}

static void bad_files_are_refused(void)
{
    refused("", "line 1");
    refused("{", "a machine is a JSON object");
    refused("[]", "\"format\" must be \"lockstep-machine\"");
    refused("{\"format\":\"lockstep-network\"}", "it is no machine");
    refused("{\"format\":\"lockstep-machine\"}", "it has no \"version\"");
    refused("{\"format\":\"lockstep-machine\",\"version\":2}", "\"version\" is 2, this program reads 1");
    refused("{\"format\":\"lockstep-machine\",\"version\":1}", "it has no \"name\"");
    refused("{" HEAD ",\"speed\":1}", "it has a \"speed\", which a machine has not");
    refused("{" HEAD ",\"memory_bytes\":-1}", "\"memory_bytes\" is -1, must be a number from 0 to");
    refused("{" HEAD ",\"cores\":1.5}", "\"cores\" is 1.5, must be a whole number from 0 to");
    refused("{" HEAD ",\"about\":\"a\\nb\"}", "must be a text of one line");
    refused("{" HEAD ",\"about\":7}", "\"about\" is 7, must be a text");
    refused("{" HEAD ",\"jitter\":[{\"step_s\":1,\"alone\":[1,1]}]}",
            "\"alone\" has 2 numbers, must have 101");
    refused("{" HEAD ",\"jitter\":[{\"step_s\":1},{\"step_s\":1}]}",
            "must be more than that of the one before");
    refused("{" HEAD ",\"ops\":{}}", "\"ops\" is an object, must be a list");
    refused("{" HEAD ",\"ops\":[{}]}", "ops 0: it has no \"op\"");
    refused("{" HEAD ",\"ops\":[1]}", "ops 0: it is no object");
    refused("{" HEAD ",\"nodes\":[{\"op\":\"add\",\"attributes\":\"\",\"layer\":\"\",\"backward\":0}]}",
            "nodes 0: \"backward\" is 0, must be true or false");
    refused("{" HEAD ",\"nodes\":[{\"op\":\"add\",\"attributes\":\"\",\"layer\":\"\",\"backward\":false,"
            "\"points\":[]}]}",
            "nodes 0: its \"points\" are empty");
    refused("{" HEAD ",\"nodes\":[{\"op\":\"add\",\"attributes\":\"\",\"layer\":\"\",\"backward\":false,"
            "\"points\":[[1,2,3]]}]}",
            "point 0 must be a list of four numbers");
    refused("{" HEAD ",\"nodes\":[{\"op\":\"add\",\"attributes\":\"\",\"layer\":\"\",\"backward\":false,"
            "\"points\":[[2,1,1,1],[1,1,1,1]]}]}",
            "point 1 has 1 samples after 2: they rise");
    refused("{" HEAD ",\"crowding\":[{\"ranks\":4,\"factor\":1},{\"ranks\":2,\"factor\":1}]}",
            "crowding 1: 2 ranks come after 4: they rise");
    refused("{" HEAD ",\"crowding\":[{\"ranks\":2,\"factor\":1},{\"ranks\":2,\"factor\":1}]}",
            "crowding 1: 2 ranks with batch 0 come after as many with batch 0");
    refused("{" HEAD
            ",\"crowding\":[{\"ranks\":2,\"batch\":8,\"factor\":1},{\"ranks\":2,\"batch\":4,\"factor\":1}]}",
            "2 ranks with batch 4 come after as many with batch 8");
    refused("{" HEAD ",\"uneven\":[1]}", "\"uneven\" has 1 numbers, must have 2 or more, or none");
    refused("{" HEAD
            ",\"together\":[{\"experiment\":\"a\",\"ranks\":1,\"nodes\":1,\"batch\":8,\"measured_s\":1,"
            "\"computed_s\":1}]}",
            "together 0: \"ranks\" is 1");
    refused("{" HEAD
            ",\"together\":[{\"experiment\":\"a\",\"ranks\":2,\"nodes\":1,\"batch\":8,\"measured_s\":0,"
            "\"computed_s\":1}]}",
            "\"measured_s\" is 0");
    refused("{" HEAD ",\"uneven\":[1.5, 1]}",
            "\"uneven\" 1 must be a number from 0.001 to 1000, and not less");
    refused("{" HEAD ",\"crowding\":[{\"ranks\":0,\"factor\":1}]}", "\"ranks\" is 0, must be a whole number");
}

static void files_that_are_not_there_are_named(void)
{
    ls_machine m;
    ls_err err = {0};

    CHECK_STATUS(ls_machine_open(&m, "./no-such.json", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "no-such.json");
    ls_machine_release(&m);
    err = (ls_err){0};
    CHECK_STATUS(ls_machine_open(&m, "v10", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "did you mean v100?");
    ls_machine_release(&m);
}

static void same_machine(const ls_machine *a, const ls_machine *b)
{
    json_t *x = ls_machine_json(a), *y = ls_machine_json(b);

    CHECK(x != NULL && json_equal(x, y));
    json_decref(x);
    json_decref(y);
}

static void read_back(const ls_machine *m)
{
    json_t *o = ls_machine_json(m), *both = json_pack("{s:O, s:{}}", "machine", o, "network");
    char *plain = json_dumps(o, 0), *inside = json_dumps(both, 0);
    ls_machine again;
    ls_err err = {0};

    REQUIRE(plain != NULL && inside != NULL);
    if (CHECK_OK(ls_machine_parse(&again, plain, strlen(plain), "again", &err), &err))
        same_machine(m, &again);
    ls_machine_release(&again);
    if (CHECK_OK(ls_machine_parse(&again, inside, strlen(inside), "again", &err), &err)) /* a calibration */
        same_machine(m, &again);
    ls_machine_release(&again);
    free(plain);
    free(inside);
    json_decref(o);
    json_decref(both);
}

static void presets_are_machines(void)
{
    const char *about;
    int n = 0;

    for (const char *name; (name = ls_machine_preset(n, &about)) != NULL; n++) {
        ls_machine m;
        ls_err err = {0};
        if (!CHECK_OK(ls_machine_open(&m, name, &err), &err)) continue;
        CHECK_EQ_STR(m.name, name);
        CHECK(about[0] != '\0' && m.n_ops > 10 && m.error > 0 && ls_machine_jitter(&m, 1, 1) == NULL);
        CHECK_CONTAINS(m.source, "data sheet");
        CHECK_CONTAINS(m.source, "Rates of ops are");
        CHECK(m.own_exchange == (strcmp(m.device, "cpu") == 0));
        for (int32_t i = 0; i < m.n_ops; i++)
            CHECK(m.ops[i].flop_s <= m.flop_s && m.ops[i].bytes_s <= m.bytes_s);
        read_back(&m);
        ls_machine_release(&m);
    }
    CHECK_EQ_INT(n, 6);
}

static void memory_that_runs_out_is_said(void)
{
    const size_t before = ls_mem_stats_now().live_bytes[LS_MEM_CLI];
    uint64_t n = 0;
    ls_status st = LS_NOMEM;

    while (st != LS_OK && n < 1000) {
        ls_machine m;
        ls_err err = {0};
        ls_mem_fail_at(++n);
        st = ls_machine_open(&m, "v100", &err);
        ls_mem_fail_at(0);
        CHECK(st == LS_OK || (st == LS_NOMEM && err.text[0] != '\0'));
        ls_machine_release(&m);
        CHECK_EQ_INT(ls_mem_stats_now().live_bytes[LS_MEM_CLI], before);
    }
    CHECK(n > 1 && st == LS_OK);
}

/* -- costs ------------------------------------------------------------------------------------------------
 */

static void lines_are_fitted(void)
{
    const double x[] = {8, 16, 32, 64};
    double y[4], a, b, error;

    for (int i = 0; i < 4; i++) y[i] = 0.003 + 0.0005 * x[i];
    lsi_fit_line(x, y, 4, &a, &b, &error);
    CHECK_NEAR(a, 0.003, 1e-12);
    CHECK_NEAR(b, 0.0005, 1e-12);
    CHECK_NEAR(error, 0, 1e-9);
    for (int i = 0; i < 4; i++) y[i] = 0.0005 * x[i] - 0.001; /* below zero at no samples: through it */
    lsi_fit_line(x, y, 4, &a, &b, &error);
    CHECK_NEAR(a, 0, 0);
    CHECK(b > 0.0004 && b < 0.0005 && error > 0.01);
    for (int i = 0; i < 4; i++) y[i] = 0.1 - 0.001 * x[i]; /* faster with more: it does not depend on them */
    lsi_fit_line(x, y, 4, &a, &b, &error);
    CHECK_NEAR(b, 0, 0);
    CHECK(a > 0.04 && a < 0.09);
    y[0] = 0.5;
    lsi_fit_line(x, y, 1, &a, &b, &error);
    CHECK_NEAR(a, 0, 0);
    CHECK_NEAR(b, 0.5 / 8, 1e-15);
}

/* A node of 1000 FLOPs and 100 + 10 bytes a sample, and 2 + 3 ms a sample. */
static ls_machine_node line_node(int n, const double *batches)
{
    ls_machine_node node = {.op = "conv2d", .attributes = "k=3", .layer = "c", .n_points = n};

    for (int i = 0; i < n; i++)
        node.point[i] = (ls_machine_point){batches[i], 0.002 + 0.003 * batches[i], 1000 * batches[i],
                                           100 + 10 * batches[i]};
    return node;
}

static ls_node_cost cost(const ls_machine *m, int64_t batch, double flops, double bytes)
{
    const ls_document d = {.batch = batch};
    const ls_doc_node n = {.op = "conv2d",
                           .attributes = "k=3",
                           .layer = "c",
                           .flops = flops,
                           .bytes = bytes,
                           .queue = "compute"};

    return ls_machine_node_cost(m, &d, &n);
}

static void nodes_are_found_at_any_batch(void)
{
    const double batches[] = {8, 16, 64};
    ls_machine_node node = line_node(3, batches);
    ls_machine m = {.nodes = &node, .n_nodes = 1, .flop_s = 1e6, .bytes_s = 1e6};
    ls_node_cost c = cost(&m, 16, 16000, 260);

    CHECK_EQ_INT(c.source, LS_COST_MEASURED);
    CHECK_NEAR(c.seconds, 0.050, 1e-12);
    CHECK_NEAR(c.error, 0, 0);
    c = cost(&m, 40, 40000, 500);
    CHECK_EQ_INT(c.source, LS_COST_INTERPOLATED);
    CHECK_NEAR(c.seconds, 0.122, 1e-12);
    CHECK(c.error < 1e-6); /* three points on one line */
    c = cost(&m, 256, 256000, 2660);
    CHECK_EQ_INT(c.source, LS_COST_EXTRAPOLATED);
    CHECK_NEAR(c.seconds, 0.770, 1e-9);
    CHECK_NEAR(c.error, 0.15, 1e-6); /* 0.05, and 0.05 for each of two doublings */
    c = cost(&m, 2, 2000, 120);
    CHECK_EQ_INT(c.source, LS_COST_EXTRAPOLATED);
    CHECK_NEAR(c.seconds, 0.008, 1e-9);
    c = cost(&m, 16, 32000, 260); /* another node of the same words */
    CHECK_EQ_INT(c.source, LS_COST_PEAKS);
    CHECK_NEAR(c.seconds, 0.032, 1e-12);
    CHECK_NEAR(c.error, 0.5, 0);
}

static void one_point_is_taken_to_grow_with_its_work(void)
{
    const double batches[] = {8};
    ls_machine_node node = line_node(1, batches);
    ls_machine_op op = {.op = "conv2d", .flop_s = 1e6, .launch_s = 0.002, .error = 0.2};
    ls_machine m = {.nodes = &node, .n_nodes = 1, .ops = &op, .n_ops = 1, .flop_s = 1e9, .bytes_s = 1e9};
    ls_node_cost c = cost(&m, 8, 8000, 180);

    CHECK_EQ_INT(c.source, LS_COST_MEASURED);
    CHECK_NEAR(c.seconds, 0.026, 1e-12);
    c = cost(&m, 32, 32000, 420);
    CHECK_EQ_INT(c.source, LS_COST_EXTRAPOLATED);
    CHECK_NEAR(c.seconds, 0.098, 1e-12);
    c = cost(&m, 32, 8000, 180); /* work on weights, which knows no batch */
    CHECK_EQ_INT(c.source, LS_COST_MEASURED);
    CHECK_NEAR(c.seconds, 0.026, 1e-12);
    c = cost(&m, 32, 77000, 420); /* another one: as this one, by its bytes or FLOPs */
    CHECK_EQ_INT(c.source, LS_COST_RATES);
    CHECK_NEAR(c.seconds, 0.026 * 420 / 180, 1e-9);
    CHECK(c.error > 0.3);
    m.n_nodes = 0; /* by the rates of its op */
    c = cost(&m, 32, 77000, 420);
    CHECK_EQ_INT(c.source, LS_COST_RATES);
    CHECK_NEAR(c.seconds, 0.002 + 0.077, 1e-12);
    CHECK_NEAR(c.error, 0.2, 0);
}

/* Two convolutions with rates of their own, each of three sizes: another one goes by those that are like it,
 * in kind before size, and says how much they differ. */
static void nodes_are_as_those_that_are_like_them(void)
{
    ls_machine_node nodes[2] = {{.op = "conv2d", .attributes = "kernel=3x3 pad=1,1", .n_points = 3},
                                {.op = "conv2d", .attributes = "kernel=5x5 pad=2,2", .n_points = 3}};
    ls_machine_op op = {.op = "conv2d", .flop_s = 1e3, .error = 1};
    ls_machine m = {.nodes = nodes, .n_nodes = 2, .ops = &op, .n_ops = 1};
    ls_doc_node node = {.op = "conv2d", .layer = "new", .flops = 3e6, .bytes = 3e4};
    const ls_document d = {.batch = 8};
    ls_node_cost c;

    for (int k = 0; k < 3; k++) {
        const double flops = 1e6 * (1 << k);
        nodes[0].layer = nodes[1].layer = "old";
        nodes[0].point[k] = (ls_machine_point){8 << k, 0.001 + flops / 1e9, flops, flops / 100};
        nodes[1].point[k] = (ls_machine_point){8 << k, 0.001 + flops / 1e8, flops, flops / 100};
    }
    node.attributes = "kernel=3x3 pad=0,0";
    c = ls_machine_node_cost(&m, &d, &node);
    CHECK_EQ_INT(c.source, LS_COST_RATES);
    CHECK_EQ_INT(c.op, 0);
    CHECK(c.seconds > 0.0035 && c.seconds < 0.010); /* 0.004 of its own kind, 0.031 of the other */
    node.attributes = "kernel=5x5 pad=0,0";
    c = ls_machine_node_cost(&m, &d, &node);
    CHECK(c.seconds > 0.02 && c.seconds < 0.033);
    {
        const double known = c.error;
        node.attributes = "kernel=7x7 groups=2 pad=0,0"; /* like none of them */
        c = ls_machine_node_cost(&m, &d, &node);
        CHECK(c.error > known + 0.2);
        CHECK(c.seconds > 0.004 && c.seconds < 0.031);
    }
    node.op = "conv2d_dw"; /* of which nothing is known */
    CHECK_EQ_INT(ls_machine_node_cost(&m, &d, &node).source, LS_COST_PEAKS);
}

static void crowding_is_between_and_beyond(void)
{
    ls_crowding measured[] = {{1, 0, 1}, {2, 0, 1.1}, {4, 0, 1.4}};
    ls_machine m = {.crowding = measured, .n_crowding = 3, .threads = 1, .cores = 8};

    CHECK_NEAR(ls_machine_crowded(&m, 1, 8), 1, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 4, 8), 1.4, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 3, 8), 1.25, 1e-12);
    CHECK_NEAR(ls_machine_crowded(&m, 8, 8), 1.7, 1e-12);  /* 0.3 for each doubling */
    CHECK_NEAR(ls_machine_crowded(&m, 32, 8), 5.6, 1e-12); /* four take turns on a core */
    m.n_crowding = 0;
    CHECK_NEAR(ls_machine_crowded(&m, 8, 8), 1, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 16, 8), 2, 0);
    m.cores = 0;
    CHECK_NEAR(ls_machine_crowded(&m, 16, 8), 1, 0);
}

static void crowding_is_of_a_batch(void)
{
    ls_crowding measured[] = {{1, 0, 1}, {16, 8, 1.2}, {16, 32, 2}};
    ls_machine m = {.crowding = measured, .n_crowding = 3, .threads = 1, .cores = 16};

    CHECK_NEAR(ls_machine_crowded(&m, 16, 8), 1.2, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 16, 4), 1.2, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 16, 16), 1.6, 1e-12);
    CHECK_NEAR(ls_machine_crowded(&m, 16, 32), 2, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 16, 64), 2, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 8, 32), 1 + 7.0 / 15, 1e-12);
    CHECK_NEAR(ls_machine_crowded(&m, 1, 32), 1, 0);
    CHECK_NEAR(ls_machine_crowded(&m, 32, 32), 4, 1e-12); /* two take turns on a core */
}

static void ranks_of_a_machine_are_as_unlike_as_measured(void)
{
    double uneven[] = {0.9, 1, 1, 1.5};
    ls_machine m = {.uneven = uneven, .n_uneven = 4};

    for (int i = 0; i < 4; i++) CHECK_NEAR(ls_machine_uneven(&m, i, 4), uneven[i], 0);
    CHECK_NEAR(ls_machine_uneven(&m, 0, 2), 0.95, 1e-12);
    CHECK_NEAR(ls_machine_uneven(&m, 1, 2), 1.25, 1e-12);
    CHECK_NEAR(ls_machine_uneven(&m, 0, 1), 1, 0);
    CHECK_NEAR(ls_machine_uneven(&m, 0, 100), 0.9, 0);
    CHECK_NEAR(ls_machine_uneven(&m, 99, 100), 1.5, 0);
    m.uneven_error = 0.2;
    CHECK_NEAR(ls_machine_uneven_error(&m, 1), 0, 0);
    CHECK_NEAR(ls_machine_uneven_error(&m, 2), 0.2 * log(1.25) / log(1.5), 1e-12);
    CHECK_NEAR(ls_machine_uneven_error(&m, 4), 0.2, 1e-12);
    CHECK_NEAR(ls_machine_uneven_error(&m, 100), 0.2, 1e-12);
    m.n_uneven = 0;
    CHECK_NEAR(ls_machine_uneven(&m, 3, 4), 1, 0);
}

/* -- exports ----------------------------------------------------------------------------------------------
 */

/* What a node took: so much for itself, and for its bytes. */
static double took(const ls_doc_node *n)
{
    return 1e-6 + n->bytes * (n->backward ? 2e-9 : 1e-9);
}

/* A file of `bench --export` for the plans, whose nodes are `slower` than they are alone. */
static void write_export(const char *path, plans_here *p, int ranks, int threads, double slower)
{
    json_t *plans = json_array(), *steps = json_array(), *o;
    double sum = 0;
    ls_err err = {0};

    for (int i = 0; i < p->n; i++) {
        for (int32_t k = 0; k < p->plan[i].n_nodes; k++) {
            p->plan[i].nodes[k].seconds = slower * took(&p->plan[i].nodes[k]);
            sum += p->plan[i].nodes[k].seconds;
        }
        json_array_append_new(plans, ls_document_json(&p->plan[i]));
    }
    json_array_append_new(steps, json_real(100 * sum)); /* the first ones are left out */
    json_array_append_new(steps, json_real(50 * sum));
    for (int i = 0; i < 101; i++) json_array_append_new(steps, json_real(sum * (0.9 + 0.002 * i)));
    o = json_pack(
        "{s:s, s:i, s:i, s:{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:f}, s:{s:f, s:f, s:f}, s:o, s:o}",
        "event", "bench-export", "format", 2, "plan_format", LS_PLANS_FORMAT, "result", "experiment", "mnist",
        "device", "cpu", "host", "there", "ranks", ranks, "hosts", 1, "threads", threads, "cores", 8,
        "batch_per_rank", (int)p->plan[0].batch, "peak_flop_s", 1e11 * ranks, "peak_copy_b_s", 1e10 * ranks,
        "profile", "step_s", 1.25 * sum, "plain_step_s", sum * 1.25 * 0.96, "rest_s", sum * 0.25, "plans",
        plans, "steps_s", steps);
    REQUIRE(o != NULL);
    REQUIRE_OK(ls_json_write(path, o, &err), &err);
    json_decref(o);
}

static void open_plans(plans_here *p, const char *batch, int ranks)
{
    const char *const settings[] = {batch, NULL};

    plans_here_open(p, "mnist", settings, ranks, 0);
}

static void check_costs(const ls_machine *m, const char *batch, double within, ls_cost_source source)
{
    plans_here p;

    open_plans(&p, batch, 1);
    for (int32_t i = 0; i < p.plan[0].n_nodes; i++) {
        const ls_doc_node *n = &p.plan[0].nodes[i];
        const ls_node_cost c = ls_machine_node_cost(m, &p.plan[0], n);
        if (!CHECK_NEAR(c.seconds / (0.96 * took(n)), 1, within))
            printf("  %s of \"%s\", %s: %s\n", n->op, n->layer, batch, ls_cost_source_name(c.source));
        /* Updates are the same at every batch. */
        CHECK(c.source == source || c.source == LS_COST_MEASURED || c.source == LS_COST_INTERPOLATED);
    }
    plans_here_release(&p);
}

static void exports_make_a_machine(void)
{
    static const char *const batches[] = {"batch.per_rank=8", "batch.per_rank=16", "batch.per_rank=64"};
    char folder[200], path[4][256];
    const char *paths[4] = {path[0], path[1], path[2], path[3]};
    plans_here p;
    ls_machine m;
    ls_err err = {0};

    check_new_folder(folder, sizeof folder);
    for (int i = 0; i < 4; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d.json", folder, i);
        open_plans(&p, batches[i % 3], i < 3 ? 1 : 4);
        write_export(path[i], &p, i < 3 ? 1 : 4, 1, i < 3 ? 1 : 1.5);
        plans_here_release(&p);
    }
    REQUIRE_OK(ls_machine_from_exports(&m, paths, 4, &err), &err);
    CHECK_EQ_STR(m.name, "there");
    CHECK_NEAR(m.flop_s, 1e11, 1);
    CHECK_NEAR(m.error, 0.04, 1e-6); /* what clocks took */
    CHECK(m.own_exchange && m.rest_s > 0 && m.n_ops > 5);
    CHECK_EQ_INT(m.n_crowding, 2);
    CHECK_NEAR(ls_machine_crowded(&m, 4, 8), 1.5, 1e-6);
    CHECK_EQ_INT(m.ranks_per_node, 4);
    CHECK_NEAR(m.jitter[0].alone[50], 1, 1e-9);
    CHECK(m.jitter[0].alone[0] > 0.9 && m.jitter[0].alone[0] < 0.92 && m.jitter[0].alone[100] < 1.1 &&
          m.jitter[0].alone[100] > 1.08);
    check_costs(&m, "batch.per_rank=16", 1e-6, LS_COST_MEASURED);
    check_costs(&m, "batch.per_rank=32", 1e-6, LS_COST_INTERPOLATED);
    check_costs(&m, "batch.per_rank=256", 1e-4, LS_COST_EXTRAPOLATED);
    read_back(&m);
    ls_machine_release(&m);
}

/* A file of --beside: rank 0 takes `step` seconds, the others `others`. */
static void write_beside(const char *path, plans_here *p, double step, const double *others, int n)
{
    json_t *o, *result, *list = json_array();
    ls_err err = {0};

    write_export(path, p, 1, 1, 1);
    REQUIRE_OK(ls_json_read(&o, path, 1 << 26, &err), &err);
    result = json_object_get(o, "result");
    for (int i = 0; i < n; i++) json_array_append_new(list, json_real(others[i]));
    json_object_set_new(result, "step_s", json_pack("{s:f}", "p50", step));
    if (n > 0) json_object_set_new(result, "beside", json_integer(n));
    if (n > 0) json_object_set_new(result, "beside_step_s", list);
    if (n == 0) json_decref(list);
    REQUIRE_OK(ls_json_write(path, o, &err), &err);
    json_decref(o);
}

/* What disturbs for 8 ms makes five steps of 2 ms twice as long, and one of 20 ms 1.4 times. */
static void long_steps_spread_less(void)
{
    const char *paths[1];
    char folder[200], path[256];
    plans_here p;
    json_t *o, *steps = json_array();
    ls_machine m;
    ls_err err = {0};

    check_new_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/long.json", folder);
    open_plans(&p, "batch.per_rank=8", 1);
    write_export(path, &p, 1, 1, 1);
    REQUIRE_OK(ls_json_read(&o, path, 1 << 26, &err), &err);
    for (int i = 0; i < 1000; i++) json_array_append_new(steps, json_real(i % 100 < 5 ? 0.004 : 0.002));
    json_object_set_new(o, "steps_s", steps);
    json_object_set_new(json_object_get(o, "result"), "step_s", json_pack("{s:f}", "p50", 0.002));
    REQUIRE_OK(ls_json_write(path, o, &err), &err);
    paths[0] = path;
    REQUIRE_OK(ls_machine_from_exports(&m, paths, 1, &err), &err);
    CHECK_EQ_INT(m.n_jitter, 1);
    CHECK_NEAR(m.jitter[0].alone[100], 2, 1e-9);
    CHECK_NEAR(m.jitter[0].alone[90], 1, 1e-9);
    ls_machine_release(&m);
    {
        char other[256];
        const char *both[] = {path, other};
        snprintf(other, sizeof other, "%s/other.json", folder);
        json_object_set_new(json_object_get(o, "result"), "step_s", json_pack("{s:f}", "p50", 0.02));
        json_object_set_new(o, "steps_s", json_pack("[f, f, f, f]", 0.02, 0.02, 0.02, 0.02));
        REQUIRE_OK(ls_json_write(other, o, &err), &err);
        REQUIRE_OK(ls_machine_from_exports(&m, both, 2, &err), &err);
        CHECK_EQ_INT(m.n_jitter, 2);
        CHECK_NEAR(m.jitter[0].alone[100], 2, 1e-9);
        CHECK_NEAR(m.jitter[1].alone[100], 1.5, 0.11); /* ten steps in one: five of them, as they fall */
        ls_machine_release(&m);
    }
    json_decref(o);
    plans_here_release(&p);
}

/* Whole steps say how ranks slow one another, for each batch, and how unlike they are. */
static void ranks_beside_one_another_make_crowding(void)
{
    static const char *const batches[] = {"batch.per_rank=8", "batch.per_rank=32"};
    const double slow[] = {0.024, 0.02, 0.03}, slower[] = {0.08, 0.08, 0.12};
    const double alone[] = {0.008, 0.03, 0.012, 0.05}; /* each batch twice */
    char folder[200], path[6][256];
    const char *paths[6];
    plans_here p;
    ls_machine m;
    ls_err err = {0};

    check_new_folder(folder, sizeof folder);
    for (int i = 0; i < 6; i++) {
        paths[i] = path[i];
        snprintf(path[i], sizeof path[i], "%s/%d.json", folder, i);
        open_plans(&p, batches[i % 2], 1);
        if (i < 4)
            write_beside(path[i], &p, alone[i], NULL, 0);
        else
            write_beside(path[i], &p, i == 4 ? 0.02 : 0.04, i == 4 ? slow : slower, 3);
        plans_here_release(&p);
    }
    REQUIRE_OK(ls_machine_from_exports(&m, paths, 6, &err), &err);
    CHECK_EQ_INT(m.n_crowding, 3);
    CHECK_NEAR(ls_machine_crowded(&m, 4, 8), 2.2, 1e-9);  /* 0.02 0.02 0.024 0.03 over 0.01 */
    CHECK_NEAR(ls_machine_crowded(&m, 4, 32), 2.0, 1e-9); /* 0.04 0.08 0.08 0.12 over 0.04 */
    CHECK_EQ_INT(m.n_uneven, 4);
    CHECK_NEAR(m.uneven[3], (0.03 / 0.022 + 0.12 / 0.08) / 2, 1e-9);
    CHECK_NEAR(m.uneven[0], (0.02 / 0.022 + 0.04 / 0.08) / 2, 1e-9);
    CHECK_NEAR(m.uneven_error, fabs(log(0.03 / 0.022) - log(1.5)) / sqrt(2) * sqrt(1.5), 1e-9);
    CHECK_EQ_INT(m.n_jitter, 5); /* 0.008 s, 0.012, 0.02, 0.03 and 0.05 */
    CHECK(ls_machine_jitter(&m, 1, 0.009) == m.jitter[0].alone);
    CHECK(ls_machine_jitter(&m, 4, 0.009) == m.jitter[2].crowded);
    CHECK(ls_machine_jitter(&m, 4, 10) == m.jitter[4].crowded &&
          ls_machine_jitter(&m, 1, 10) == m.jitter[4].alone);
    /* Steps that were measured twice and are not the same: that much a single one may be off, and their mean.
     */
    CHECK_NEAR(m.error, hypot(0.04, sqrt((pow(log(1.5), 2) + pow(log(5 / 3.0), 2)) / 2 / 2 * 1.5)), 1e-9);
    read_back(&m);
    ls_machine_release(&m);
}

/* Nodes that were not measured are as fast as others of their op. */
static void rates_are_those_of_the_op(void)
{
    char folder[200], path[256];
    const char *paths[] = {path};
    plans_here p, other;
    ls_machine m;
    int rates = 0;
    ls_err err = {0};

    check_new_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/m.json", folder);
    open_plans(&p, "batch.per_rank=32", 1);
    write_export(path, &p, 1, 1, 1);
    REQUIRE_OK(ls_machine_from_exports(&m, paths, 1, &err), &err);
    plans_here_open(&other, "mnist-keras", NULL, 1, 0);
    for (int32_t i = 0; i < other.plan[0].n_nodes; i++) {
        const ls_doc_node *n = &other.plan[0].nodes[i];
        const ls_node_cost c = ls_machine_node_cost(&m, &other.plan[0], n);
        if (c.source != LS_COST_RATES || strcmp(n->op, "matmul") != 0) continue;
        rates++;
        CHECK(c.seconds > 0 && c.error >= 0.05 && c.op >= 0);
        CHECK_EQ_STR(m.ops[c.op].op, "matmul");
    }
    CHECK(rates > 0);
    ls_machine_release(&m);
    plans_here_release(&p);
    plans_here_release(&other);
}

/* Small nodes that something else has held up: the machine says how little it knows, and is read back. */
static void disturbed_nodes_are_said_to_be_little_known(void)
{
    char folder[200], path[256];
    const char *paths[] = {path};
    plans_here p;
    ls_machine m;
    double worst = 0;
    ls_err err = {0};

    check_new_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/m.json", folder);
    open_plans(&p, "batch.per_rank=32", 1);
    for (int32_t i = 0; i < p.plan[0].n_nodes; i++) {
        ls_doc_node *n = &p.plan[0].nodes[i];
        if (i % 5 == 0)
            n->bytes = n->bytes * 1000 + 1e9; /* which makes their time a thousand times as long */
    }
    write_export(path, &p, 1, 1, 1);
    REQUIRE_OK(ls_machine_from_exports(&m, paths, 1, &err), &err);
    for (int32_t i = 0; i < m.n_nodes; i++) m.nodes[i].point[0].bytes = m.nodes[i].point[0].flops = 8;
    REQUIRE_OK(lsi_machine_rate(&m, &err), &err);
    for (int32_t i = 0; i < m.n_ops; i++) worst = m.ops[i].error > worst ? m.ops[i].error : worst;
    CHECK_NEAR(worst, 2, 0);
    read_back(&m);
    ls_machine_release(&m);
    plans_here_release(&p);
}

/* A step of four machines whose nodes take half as long again as alone: that much for its bytes, at any
 * batch. */
static void exchanges_take_from_what_is_computed_by_their_bytes(void)
{
    const char *const batch = "batch.per_rank=16";
    char folder[200], path[2][256];
    const char *paths[2] = {path[0], path[1]};
    double sum = 0, bytes = 0;
    plans_here p;
    json_t *o;
    ls_machine m;
    ls_err err = {0};

    check_new_folder(folder, sizeof folder);
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d.json", folder, i);
        plans_here_open(&p, "mnist", (const char *const[]){batch, NULL}, i == 0 ? 1 : 4, i == 0 ? 0 : 1);
        write_export(path[i], &p, i == 0 ? 1 : 4, 1, i == 0 ? 1 : 1.5);
        if (i == 0) plans_here_release(&p);
    }
    REQUIRE_OK(ls_json_read(&o, path[1], 1 << 26, &err), &err);
    json_object_set_new(json_object_get(o, "result"), "hosts", json_integer(4));
    REQUIRE_OK(ls_json_write(path[1], o, &err), &err);
    json_decref(o);
    REQUIRE_OK(ls_machine_from_exports(&m, paths, 2, &err), &err);
    for (int32_t i = 0; i < p.plan[0].n_collectives; i++)
        if (p.plan[0].collectives[i].bucket >= 0) bytes += (double)p.plan[0].collectives[i].bytes;
    for (int32_t i = 0; i < p.plan[0].n_nodes; i++)
        if (strcmp(p.plan[0].nodes[i].queue, "comm") != 0) sum += 0.96 * took(&p.plan[0].nodes[i]);
    CHECK(bytes > 80000);
    CHECK_NEAR(m.exchanging_s_per_byte * bytes / sum, 0.5,
               0.03); /* some nodes are those of several ranks alone */
    read_back(&m);
    ls_machine_release(&m);
    plans_here_release(&p);
}

static void exports_that_do_not_go_together_are_refused(void)
{
    char folder[200], path[3][256];
    const char *paths[2] = {path[0], path[1]}, *broken[1] = {path[2]};
    plans_here p;
    ls_machine m;
    ls_err err = {0};
    FILE *f;

    check_new_folder(folder, sizeof folder);
    for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s/%d.json", folder, i);
    open_plans(&p, "batch.per_rank=8", 1);
    write_export(path[0], &p, 1, 1, 1);
    write_export(path[1], &p, 1, 2, 1);
    plans_here_release(&p);
    CHECK_STATUS(ls_machine_from_exports(&m, paths, 2, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "1 threads a rank and");
    ls_machine_release(&m);
    err = (ls_err){0};
    f = fopen(path[2], "w");
    REQUIRE(f != NULL);
    fputs("{\"event\": \"bench\"}", f);
    fclose(f);
    CHECK_STATUS(ls_machine_from_exports(&m, broken, 1, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "it is no file of `lockstep bench --export`");
    ls_machine_release(&m);
    err = (ls_err){0};
    CHECK_STATUS(ls_machine_from_exports(&m, broken, 0, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "at least one file");
    ls_machine_release(&m);
}

int main(void)
{
    CHECK_RUN(bad_files_are_refused);
    CHECK_RUN(files_that_are_not_there_are_named);
    CHECK_RUN(presets_are_machines);
    CHECK_RUN(memory_that_runs_out_is_said);
    CHECK_RUN(lines_are_fitted);
    CHECK_RUN(nodes_are_found_at_any_batch);
    CHECK_RUN(one_point_is_taken_to_grow_with_its_work);
    CHECK_RUN(nodes_are_as_those_that_are_like_them);
    CHECK_RUN(crowding_is_between_and_beyond);
    CHECK_RUN(crowding_is_of_a_batch);
    CHECK_RUN(ranks_of_a_machine_are_as_unlike_as_measured);
    CHECK_RUN(exports_make_a_machine);
    CHECK_RUN(ranks_beside_one_another_make_crowding);
    CHECK_RUN(exchanges_take_from_what_is_computed_by_their_bytes);
    CHECK_RUN(long_steps_spread_less);
    CHECK_RUN(rates_are_those_of_the_op);
    CHECK_RUN(disturbed_nodes_are_said_to_be_little_known);
    CHECK_RUN(exports_that_do_not_go_together_are_refused);
    return CHECK_DONE();
}
