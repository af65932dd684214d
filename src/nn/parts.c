/* parts.c: steps that are cut in two, and steps of several ranks: what happens to gradients between autodiff
 * and the optimiser, and at the end of a step.
 *
 * A bucket is a set of gradients that ranks exchange together.  Gradients join buckets in the order in which
 * the backward pass makes them, so that a bucket is complete early and travels while the rest is computed.
 * The first one is small, to begin early.  Running statistics, metrics and the host's control number make a
 * last, tiny bucket: after a step all replicas are equal to the bit, and all ranks know the same numbers. */
#include <stdlib.h>
#include <string.h>

#include "nn/nn_internal.h"

enum { BUCKET_BYTES = 8 << 20, FIRST_BUCKET_BYTES = 1 << 20 };

ls_value lsi_sum_variable(ls_step *s, const char *name, ls_shape shape)
{
    const char *full = ls_arena_printf(s->g->arena, "accumulated.%s", name);

    if (full == NULL) return ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    return lsi_variable(s, full, NULL, LS_VAR_ACCUMULATED, LS_F32, shape, (ls_init){LS_INIT_CONST, 0});
}

static ls_value sum_of(ls_step *s, int32_t var)
{
    const ls_var *v = s->g->vars[var];

    return lsi_sum_variable(s, v->name, s->g->values[v->first]->shape);
}

void lsi_accumulate(ls_step *s, int n, const int32_t *vars, const ls_value *grads)
{
    const ls_value weight = lsi_scalar_input(s, "gradient.weight"),
                   keep = lsi_scalar_input(s, "gradient.keep");

    for (int i = 0; i < n; i++) {
        const ls_value sum = sum_of(s, vars[i]);
        ls_value next;
        if (!lsi_step_open(s)) return;
        next = ls_accumulate(sum, grads[i], keep, weight);
        if (!ls_value_ok(next)) return;
        ls_graph_advance(s->g, s->g->values[sum.id]->var, next);
        lsi_note_changed(s, s->g->vars[s->g->values[sum.id]->var]->name);
    }
}

void lsi_accumulated(ls_step *s, int n, const int32_t *vars, ls_value *grads)
{
    for (int i = 0; i < n; i++) grads[i] = sum_of(s, vars[i]);
}

void lsi_note_changed(ls_step *s, const char *var)
{
    const char *name = ls_arena_strdup(s->arena, var);

    if (name == NULL)
        ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    else if (!ls_step_changes(s, name) &&
             lsi_step_grow(s, (void **)&s->changed, s->n_changed, &s->cap_changed, sizeof *s->changed))
        s->changed[s->n_changed++] = name;
}

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

/* One exchange of the tensors x[list[0..n-1].index]; results take their places.  The last `plain` are not
 * weighted. */
static void reduce_bucket(ls_step *s, ls_value weight, int n, int plain, const ready *list, ls_value *x)
{
    ls_value *members = ls_arena_alloc(s->g->arena, (size_t)(2 * n + 1) * sizeof *members), sum;

    if (members == NULL) {
        ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
        return;
    }
    for (int i = 0; i < n; i++) members[i] = x[list[i].index];
    sum = ls_all_reduce(weight, n, plain, members, members + n);
    if (!ls_value_ok(sum)) return;
    for (int i = 0; i < n; i++) {
        x[list[i].index] = ls_graph_out(sum, i);
        s->g->values[x[list[i].index].id]->category = LS_CAT_COMM;
    }
}

void lsi_exchange(ls_step *s, ls_value weight, int n, int plain, ls_value *x)
{
    ready *list = ls_arena_alloc(s->g->arena, (size_t)n * sizeof *list);

    if (list == NULL) {
        ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
        return;
    }
    for (int i = 0; i < n; i++) list[i] = (ready){0, i, 0};
    reduce_bucket(s, weight, n, plain, list, x);
}

void lsi_reduce(ls_step *s, int n, ls_value *grads)
{
    const int64_t usual = s->how.bucket_bytes > 0 ? s->how.bucket_bytes : BUCKET_BYTES;
    const ls_value weight = s->how.part == LS_PART_UPDATE ? ls_fill(s->g, LS_SHAPE_SCALAR, LS_F32, 1)
                                                          : lsi_scalar_input(s, "gradient.weight");
    ready *list = ls_arena_alloc(s->g->arena, (size_t)n * sizeof *list);
    int begin = 0, made = 0;

    if (list == NULL) ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
    if (!lsi_step_open(s) || !ls_value_ok(weight)) return;
    for (int i = 0; i < n; i++)
        list[i] = (ready){s->g->values[grads[i].id]->node, i,
                          ls_shape_count(ls_value_shape(grads[i])) * (int64_t)sizeof(float)};
    qsort(list, (size_t)n, sizeof *list, by_node);
    while (begin < n) {
        const int64_t limit = made++ == 0 && usual > FIRST_BUCKET_BYTES ? FIRST_BUCKET_BYTES : usual;
        int64_t bytes = list[begin].bytes;
        int end = begin + 1;
        while (end < n && bytes + list[end].bytes <= limit) bytes += list[end++].bytes;
        reduce_bucket(s, weight, end - begin, 0, list + begin, grads);
        begin = end;
    }
}

/* -- clipping ---------------------------------------------------------------------------------------------
 */

ls_value lsi_clip(ls_step *s, int n, const ls_value *grads)
{
    const ls_value one = ls_fill(s->g, LS_SHAPE_SCALAR, LS_F32, 1);
    ls_value squares = {s->g, -1}, norm;

    for (int i = 0; i < n; i++) {
        const int rank = ls_value_shape(grads[i]).rank;
        const ls_value q = ls_reduce_sum(ls_square(grads[i]), (1u << rank) - 1, false);
        squares = i == 0 ? q : ls_add(squares, q);
    }
    /* Gradients carry the loss scale; the small number is the one PyTorch adds. */
    norm = ls_div(ls_sqrt(squares), s->loss_scale);
    return ls_mul(s->loss_scale,
                  ls_maximum(one, ls_affine(norm, 1 / s->how.clip_norm, 1e-6 / s->how.clip_norm)));
}

/* -- the end of a step ------------------------------------------------------------------------------------
 */

/* Running statistics that this step has changed. */
static bool is_changed_buffer(const ls_step *s, const ls_var *v)
{
    return v->role == LS_VAR_BUFFER && s->g->values[v->first]->dtype == LS_F32 &&
           (v->current != v->first || s->how.part == LS_PART_UPDATE);
}

static bool is_scalar_fetch(const ls_vinfo *v)
{
    return v->fetch && v->dtype == LS_F32 && v->shape.rank == 0;
}

/* The numbers of the host's own that travel with the update. */
static ls_value control_input(ls_step *s)
{
    for (int32_t i = 0; i < s->g->n_values; i++)
        if (s->g->values[i]->kind == LS_VALUE_INPUT && strcmp(s->g->values[i]->name, "control") == 0)
            return lsi_step_fail(s, "the name \"control\" is taken; call the input something else");
    return ls_graph_input(s->g, "control", LS_F32, LS_SHAPE(LS_CONTROL_SLOTS));
}

/* Everything but gradients that ranks sum up, in one exchange. */
static void reduce_rest(ls_step *s)
{
    ls_graph *g = s->g;
    const size_t most = (size_t)g->n_vars + (size_t)g->n_values + 1;
    const ls_value weight =
        lsi_scalar_input(s, s->how.part == LS_PART_UPDATE ? "rank.weight" : "gradient.weight");
    ls_value *x = ls_arena_alloc(g->arena, most * sizeof *x);
    int32_t *vars = ls_arena_alloc(g->arena, most * sizeof *vars);
    const int32_t n_values = g->n_values;
    int n = 0, n_buffers;

    if (x == NULL || vars == NULL) ls_graph_fail(g, LS_NOMEM, "step: no memory");
    if (!lsi_step_open(s) || !ls_value_ok(weight)) return;
    for (int32_t i = 0; i < g->n_vars; i++)
        if (is_changed_buffer(s, g->vars[i])) {
            vars[n] = i;
            x[n++] = (ls_value){g, g->vars[i]->current};
        }
    n_buffers = n;
    for (int32_t i = 0; i < n_values; i++)
        if (is_scalar_fetch(g->values[i])) x[n++] = (ls_value){g, i};
    x[n++] = control_input(s);
    if (!lsi_step_open(s)) return;
    for (int i = n_buffers; i < n - 1; i++) {
        vars[i] = x[i].id;
        g->values[x[i].id]->fetch = false;
    }
    lsi_exchange(s, weight, n, 1, x);
    for (int i = 0; i < n_buffers && lsi_step_open(s); i++)
        ls_graph_advance(g, vars[i], ls_assign((ls_value){g, g->vars[vars[i]]->current}, x[i]));
    for (int i = n_buffers; i < n && lsi_step_open(s); i++)
        ls_graph_fetch(ls_copy(x[i]), i < n - 1 ? g->values[vars[i]]->name : "control");
}

void lsi_close_parts(ls_step *s)
{
    const ls_part part = s->how.part;

    s->n_stages = 1;
    if (s->mode == LS_EVAL) return;
    lsi_allow_sharing(s);
    if (part != LS_PART_ALL) lsi_cut_stage(s);
    if (lsi_step_open(s) && s->how.stage >= s->n_stages)
        lsi_step_fail(s, "stage %d of a step that has %d", s->how.stage, s->n_stages);
    /* Statistics follow from the samples: the forward pass is in the other part. */
    for (int32_t i = 0; part == LS_PART_UPDATE && i < s->g->n_vars; i++)
        if (s->g->vars[i]->role == LS_VAR_BUFFER) s->g->vars[i]->current = s->g->vars[i]->first;
    /* Nothing depends on statistics before the step's last update. */
    if (!s->how.ranks || part == LS_PART_GRADIENTS || s->how.stage + 1 < s->n_stages) return;
    if (lsi_step_open(s)) reduce_rest(s);
}
