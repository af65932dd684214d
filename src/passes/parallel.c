/* parallel.c: sums over ranks: gradients in buckets between the backward pass and the optimiser, and at the
 * end of a step everything else that ranks must know alike.
 *
 * Needs: gradients as nodes (differentiate) or as sums of several batches (split).  Leaves: updates and pools
 * that get sums over ranks, or over the shards of all ranks; statistics and metrics over all ranks; the input
 * and fetch "control", and in the update by several batches "metrics".
 *
 * A bucket is a set of gradients that ranks exchange together.  Gradients join buckets in the order in which
 * the backward pass makes them, so that a bucket is complete early and travels while the rest is computed.
 * The first one is small, to begin early.  The last ones become smaller and smaller: an update runs while the
 * bytes behind it travel, which takes longer for as many, and the last one has nothing to hide it.  Running
 * statistics, metrics and the host's control number make another, tiny one: after a step all replicas are
 * equal to the bit, and all ranks know the same numbers.
 * Where every rank updates a piece of each parameter, it gets that piece of the sums alone. */
#include <stdlib.h>
#include <string.h>

#include "passes/lower_internal.h"

/* And of the first bucket, and of the last where there are many; the one before has at most ENDING times as
 * many bytes as may be behind it, and so on. */
enum { BUCKET_BYTES = 8 << 20, FIRST_BYTES = 1 << 20, LAST_BYTES = 256 << 10, ENDING = 4 };

typedef struct summing {
    ls_strategy how;
    int32_t
        found; /* a value that is 0 where this rank's own gradients are finite; -1: nobody looks at them */
} summing;

/* -- buckets ----------------------------------------------------------------------------------------------
 */

typedef struct ready {
    int32_t node; /* that makes it; -1: there from the beginning */
    int index;
    int64_t bytes;
} ready;

static int by_node(const void *a, const void *b)
{
    const ready *x = a, *y = b;

    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* One exchange of the tensors x[list[0..n-1].index]; results, of each this rank's piece if it is `scattered`,
 * take their places. */
static void reduce_bucket(ls_graph *g, bool scattered, ls_value weight, int n, const ready *list,
                          ls_collective_attr attr, ls_value *x)
{
    ls_value *members = ls_arena_alloc(g->arena, (size_t)(2 * n + 1) * sizeof *members), sum;

    if (members == NULL) {
        lsi_no_memory(g);
        return;
    }
    for (int i = 0; i < n; i++) members[i] = x[list[i].index];
    sum = scattered ? ls_reduce_scatter(weight, n, members, attr, members + n)
                    : ls_all_reduce(weight, n, members, attr, members + n);
    if (!ls_value_ok(sum)) return;
    for (int i = 0; i < n; i++) {
        x[list[i].index] = ls_graph_out(sum, i);
        g->values[x[list[i].index].id]->category = LS_CAT_COMM;
    }
}

void lsi_exchange(ls_graph *g, const ls_strategy *how, int number, ls_value weight, int n, int plain,
                  ls_value *x)
{
    const ls_collective_attr attr = {
        .bucket = how->shards > 0 ? number : -1, .plain = plain, .shards = how->shards};
    ready *list = ls_arena_alloc(g->arena, (size_t)n * sizeof *list);

    if (list == NULL) {
        lsi_no_memory(g);
        return;
    }
    for (int i = 0; i < n; i++) list[i] = (ready){0, i, 0};
    reduce_bucket(g, false, weight, n, list, attr, x);
}

/* Whether this rank's own part of a bucket is finite: bucket by bucket, so that gradients need not stay for
 * it. */
static void look(ls_graph *g, summing *s, int n, const ready *list, const ls_value *x)
{
    ls_value *members = ls_arena_alloc(g->arena, (size_t)n * sizeof *members), found;

    if (s->how.guard == LS_GUARD_NONE || !lsi_is_last(g, &s->how)) return;
    if (members == NULL) {
        lsi_no_memory(g);
        return;
    }
    for (int i = 0; i < n; i++) members[i] = x[list[i].index];
    found = ls_all_finite(n, members, 0);
    s->found = (s->found < 0 ? found : ls_add((ls_value){g, s->found}, found)).id;
}

static int64_t sum_bytes(const ready *list, int n)
{
    int64_t bytes = 0;

    for (int i = 0; i < n; i++) bytes += list[i].bytes;
    return bytes;
}

/* Where a bucket that begins with gradient `i` must end: the last ones are cut off from their end, `last`
 * bytes at most, and then more and more, as long as they are smaller than usual. */
static int must_end(const ready *list, int n, int i, int64_t last, int64_t usual)
{
    for (int64_t limit = last; limit < usual; limit *= ENDING) {
        const int end = n;
        int64_t bytes = 0;
        while (n > i && bytes + list[n - 1].bytes <= limit) bytes += list[--n].bytes;
        if (n == i) return end;
    }
    return n;
}

/* Replaces gradients by their sums over ranks, bucket by bucket in the order in which they become ready. */
static void reduce(ls_graph *g, summing *s, const ls_update_attr *a, int n, ls_value *grads)
{
    const ls_strategy *how = &s->how;
    const int64_t usual = how->bucket_bytes > 0 ? how->bucket_bytes : BUCKET_BYTES;
    const bool scattered = ls_strategy_scatters(how) && lsi_in_pieces(how, a->rule);
    const ls_collective_attr attr = {
        .bucket = -1, .ranks = scattered ? how->pieces : 0, .carried = how->carry};
    const ls_value weight = how->part == LS_PART_UPDATE ? ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1)
                                                        : ls_graph_scalar(g, "gradient.weight");
    ready *list = ls_arena_alloc(g->arena, (size_t)n * sizeof *list);
    int begin = 0, made = 0;
    int64_t last;

    if (list == NULL) lsi_no_memory(g);
    if (!lsi_sound(g) || !ls_value_ok(weight)) return;
    if (how->shards > 0) { /* leaves know no order in which gradients become ready */
        lsi_exchange(g, how, a->number, weight, n, 0, grads);
        return;
    }
    for (int i = 0; i < n; i++)
        list[i] = (ready){g->values[grads[i].id]->node, i,
                          ls_shape_count(ls_value_shape(grads[i])) * (int64_t)sizeof(float)};
    qsort(list, (size_t)n, sizeof *list, by_node);
    last = sum_bytes(list, n) > usual ? LAST_BYTES : FIRST_BYTES;
    while (begin < n) {
        const int64_t limit = made++ == 0 && usual > FIRST_BYTES ? FIRST_BYTES : usual;
        const int most = must_end(list, n, begin, last, usual);
        int64_t bytes = list[begin].bytes;
        int end = begin + 1;
        while (end < most && bytes + list[end].bytes <= limit) bytes += list[end++].bytes;
        look(g, s, end - begin, list + begin, grads);
        reduce_bucket(g, scattered, weight, end - begin, list + begin, attr, grads);
        begin = end;
    }
}

/* -- the end of a step ------------------------------------------------------------------------------------
 */

/* Running statistics that this step has changed; a shard's, in one of its stages. */
static bool is_changed_buffer(const ls_graph *g, const ls_strategy *how, const ls_var *v)
{
    if (v->role != LS_VAR_BUFFER || g->values[v->first]->dtype != LS_F32) return false;
    return how->shards > 0 ? v->moved : v->current != v->first || how->part == LS_PART_UPDATE;
}

static bool is_scalar_fetch(const ls_vinfo *v)
{
    return v->fetch && v->dtype == LS_F32 && v->shape.rank == 0;
}

int lsi_list_rest(ls_graph *g, const ls_strategy *how, int32_t *vars, ls_value *x, int *n_buffers)
{
    int n = 0;

    for (int32_t i = 0; i < g->n_vars; i++)
        if (is_changed_buffer(g, how, g->vars[i])) {
            vars[n] = i;
            x[n++] = (ls_value){g, g->vars[i]->current};
        }
    *n_buffers = n;
    for (int32_t i = 0; i < g->n_values; i++)
        if (is_scalar_fetch(g->values[i])) x[n++] = (ls_value){g, i};
    return n;
}

/* Numbers of the host's own that travel with the update. */
static ls_value host_input(ls_graph *g, const char *name, int slots)
{
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->kind == LS_VALUE_INPUT && strcmp(g->values[i]->name, name) == 0)
            return ls_graph_fail(g, LS_INVALID, "the name \"%s\" is taken; call the input something else",
                                 name);
    return ls_graph_input(g, name, LS_F32, LS_SHAPE(slots));
}

/* Everything but gradients that ranks sum up, in one exchange.  Where batches are added up, the metrics are
 * what the host has collected of them. */
static void reduce_rest(ls_graph *g, const summing *s)
{
    const ls_strategy *how = &s->how;
    const char *names[3];
    const size_t most = (size_t)g->n_vars + (size_t)g->n_values + 4;
    const bool update = how->part == LS_PART_UPDATE, last = lsi_is_last(g, how);
    const ls_value weight = how->shards > 0 ? ls_fill(g, LS_SHAPE_SCALAR, LS_F32, 1)
                                            : ls_graph_scalar(g, update ? "rank.weight" : "gradient.weight");
    ls_value *x = ls_arena_alloc(g->arena, most * sizeof *x);
    int32_t *vars = ls_arena_alloc(g->arena, most * sizeof *vars);
    int n, n_buffers, plain = 0;

    if (x == NULL || vars == NULL) lsi_no_memory(g);
    if (!lsi_sound(g) || !ls_value_ok(weight)) return;
    n = lsi_list_rest(g, how, vars, x, &n_buffers);
    for (int i = n_buffers; i < n; i++) {
        vars[i] = x[i].id;
        g->values[x[i].id]->fetch = false;
    }
    if (s->found >= 0) { /* the numbers that stand for this rank, or zeros */
        names[plain] = LS_GUARD_RANK;
        x[n + plain++] =
            ls_mul(host_input(g, LS_GUARD_RANK, LS_GUARD_SLOTS), ls_sign((ls_value){g, s->found}));
    }
    if (last && update && how->shards == 0) {
        names[plain] = "metrics";
        x[n + plain++] = host_input(g, "metrics", LS_METRIC_SLOTS);
    }
    if (last) {
        names[plain] = "control";
        x[n + plain++] = host_input(g, "control", LS_CONTROL_SLOTS);
    }
    if (!lsi_sound(g) || n + plain == 0) return;
    lsi_exchange(g, how, how->stage, weight, n + plain, plain, x);
    for (int i = 0; i < n_buffers && lsi_sound(g); i++)
        ls_graph_advance(g, vars[i], ls_assign((ls_value){g, g->vars[vars[i]]->current}, x[i]));
    for (int i = n_buffers; i < n && lsi_sound(g); i++)
        ls_graph_fetch(ls_copy(x[i]), g->values[vars[i]]->name);
    for (int i = n; i < n + plain && lsi_sound(g); i++) ls_graph_fetch(ls_copy(x[i]), names[i - n]);
}

/* -- the pass ---------------------------------------------------------------------------------------------
 */

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    summing *s = ctx;
    const ls_strategy *how = &s->how;
    ls_value *sums, first;

    if (n->op != &ls_op_update && n->op != &ls_op_keep) return false;
    sums = ls_arena_alloc(to->arena, sizeof *sums * (size_t)(n->n_in + 1));
    if (sums == NULL) {
        lsi_no_memory(to);
        return true;
    }
    memcpy(sums, in, sizeof *sums * (size_t)n->n_in);
    if (n->op == &ls_op_update) {
        reduce(to, s, n->attr, n->n_out, sums + LS_UPDATE_W + n->n_out);
        first = ls_update(sums, n->attr);
    } else {
        lsi_keep_exchange(to, how, n->attr, sums);
        first = ls_keep(sums, (ls_keep_attr){.by_place = true});
    }
    for (int k = 0; k < n->n_out; k++) out[k] = ls_graph_out(first, k);
    return true;
}

void ls_pass_parallel(ls_graph *g, const ls_strategy *how)
{
    summing s = {*how, -1};

    if (!lsi_sound(g) || how->part == LS_PART_GRADIENTS) return;
    ls_graph_rewrite(g, expand, &s);
    /* Nothing depends on statistics before the step's last update; of shards they come with every stage. */
    if ((lsi_is_last(g, how) || how->shards > 0) && lsi_sound(g)) reduce_rest(g, &s);
}
