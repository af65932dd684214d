/* profile.c: where the time of a step goes. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/units.h"

#define SHOWN_NODES 20

typedef struct kind {
    const char *op;
    int nodes;
    double seconds, flops, bytes;
} kind;

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
    return slowest_first(((const ls_plan_node *)a)->seconds, ((const ls_plan_node *)b)->seconds);
}

/* Sums the nodes by op; returns the number of kinds. */
static int gather(const ls_plan_node *node, int n, kind *kinds)
{
    int n_kinds = 0;

    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < n_kinds && strcmp(kinds[k].op, node[i].op) != 0) k++;
        if (k == n_kinds) kinds[n_kinds++] = (kind){.op = node[i].op};
        kinds[k].nodes++;
        kinds[k].seconds += node[i].seconds;
        kinds[k].flops += node[i].flops;
        kinds[k].bytes += node[i].bytes;
    }
    qsort(kinds, (size_t)n_kinds, sizeof *kinds, by_kind_time);
    return n_kinds;
}

static void print_row(const char *name, const char *layer, double seconds, double total, double flops,
                      double bytes)
{
    char a[32], b[32];

    printf("%-20s %-32s %10.3f %6.1f %% %10s %12s\n", name, layer, seconds * 1e3, 100 * seconds / total,
           ls_text_si(seconds > 0 ? flops / seconds : 0, a),
           ls_text_bytes(seconds > 0 ? bytes / seconds : 0, b));
}

static void print_text(const ls_plan_node *node, int n, const kind *kinds, int n_kinds, double total,
                       double step_s)
{
    char all[LS_UNITS_TEXT], one[LS_UNITS_TEXT];

    printf("%-20s %-32s %10s %8s %10s %12s\n", "op", "", "ms", "share", "FLOP/s", "bytes/s");
    for (int i = 0; i < n_kinds; i++) {
        char count[32];
        snprintf(count, sizeof count, "%d node%s", kinds[i].nodes, kinds[i].nodes == 1 ? "" : "s");
        print_row(kinds[i].op, count, kinds[i].seconds, total, kinds[i].flops, kinds[i].bytes);
    }
    printf("sum of nodes %s; an undisturbed step takes %s\n\n", ls_units_seconds(total, all),
           ls_units_seconds(step_s, one));
    printf("slowest nodes (' backward)\n");
    for (int i = 0; i < n && i < SHOWN_NODES; i++) {
        char op[64], where[96];
        snprintf(op, sizeof op, "%s%s", node[i].op, node[i].backward ? "'" : "");
        snprintf(where, sizeof where, "%.50s%s%.30s", node[i].scope, node[i].impl != NULL ? " " : "",
                 node[i].impl != NULL ? node[i].impl : "");
        print_row(op, where, node[i].seconds, total, node[i].flops, node[i].bytes);
    }
    printf("\n");
}

json_t *profile_node_json(const ls_plan_node *n)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:f, s:f, s:f}", "op", n->op, "layer", n->scope, "impl",
                     n->impl != NULL ? n->impl : "", "backward", n->backward, "seconds", n->seconds, "flops",
                     n->flops, "bytes", n->bytes);
}

static void print_json(const ls_plan_node *node, int n, const kind *kinds, int n_kinds, double total)
{
    json_t *by_op = json_array(), *by_node = json_array();

    for (int i = 0; i < n_kinds; i++)
        json_array_append_new(by_op, json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "op", kinds[i].op, "nodes",
                                               kinds[i].nodes, "seconds", kinds[i].seconds, "share",
                                               kinds[i].seconds / total, "flops", kinds[i].flops, "bytes",
                                               kinds[i].bytes));
    for (int i = 0; i < n; i++) json_array_append_new(by_node, profile_node_json(&node[i]));
    cli_print_json_take(json_pack("{s:s, s:f, s:o, s:o}", "event", "profile", "seconds", total, "ops", by_op,
                                  "nodes", by_node));
}

int profile_steps(double step_s)
{
    double n = 3.0 / (step_s > 1e-6 ? step_s : 1e-6);

    return n < 3 ? 3 : n > PROFILE_STEPS_MAX ? PROFILE_STEPS_MAX : (int)n;
}

ls_status profile_print(ls_plan *p, bool json, bool print, double step_s, ls_err *err)
{
    ls_status st = LS_OK;
    int n = ls_plan_node_count(p), n_kinds;
    ls_plan_node *node = ls_alloc(LS_MEM_CLI, sizeof *node * ((size_t)n + 1));
    kind *kinds = ls_alloc(LS_MEM_CLI, sizeof *kinds * ((size_t)n + 1));
    double total = 0;

    if (node == NULL || kinds == NULL) {
        st = ls_fail(err, LS_NOMEM, "profile: no memory");
        goto out;
    }
    LS_TRY(ls_plan_profile(p, profile_steps(step_s), err));
    if (!print) goto out;
    for (int i = 0; i < n; i++) {
        node[i] = ls_plan_node_at(p, i);
        total += node[i].seconds;
    }
    n_kinds = gather(node, n, kinds);
    qsort(node, (size_t)n, sizeof *node, by_node_time);
    if (json)
        print_json(node, n, kinds, n_kinds, total);
    else
        print_text(node, n, kinds, n_kinds, total, step_s);
out:
    ls_free(node);
    ls_free(kinds);
    return st;
}
