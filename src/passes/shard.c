/* shard.c: weights that ranks keep in pieces (fsdp, hybrid), and where they are gathered.
 *
 * Needs: ops as they will be computed, no gradients yet.  Leaves: parameters as variables that are this
 * rank's piece, gathers before whoever reads all of one, and updates that read and make pieces.
 *
 * What is gathered together is a unit: the parameters of a transformer block or of a residual stage, or of
 * neighbours that are small.  Parameters say by their names where they belong: "blocks.3.attn.qkv.weight" to
 * "blocks.3", "layer1.0.conv1.weight" to "layer1", "fc.bias" to "fc".  A unit is gathered where the program
 * first reads something of it, and again after an update.  What gradients read of it they gather anew
 * (differentiate.c), so that between the two the memory is free. */
#include <ctype.h>
#include <string.h>

#include "passes/lower_internal.h"

enum { UNIT_BYTES = 8 << 20 };

/* One version of a parameter, whole. */
typedef struct whole {
    int32_t piece, all; /* values */
} whole;

typedef struct sharding {
    const ls_graph *from;
    const ls_strategy *how;
    int32_t *unit; /* per variable of `from`, which the new graph numbers alike; -1: is whole */
    int32_t n_vars;
    whole *list;
    int32_t n, cap;
} sharding;

/* -- units ------------------------------------------------------------------------------------------------
 */

/* Bytes of the name that say which unit a parameter belongs to: up to the first part that ends in a digit, or
 * all parts but the last. */
static size_t unit_name(const char *name)
{
    size_t end = 0;

    for (const char *part = name, *dot; (dot = strchr(part, '.')) != NULL; part = dot + 1) {
        end = (size_t)(dot - name);
        if (dot > part && isdigit((unsigned char)dot[-1])) break;
    }
    return end;
}

static bool same_unit(const ls_var *a, const ls_var *b)
{
    const size_t n = unit_name(a->name);

    return n == unit_name(b->name) && memcmp(a->name, b->name, n) == 0;
}

static int64_t bytes_of(const ls_graph *g, const ls_var *v)
{
    return ls_shape_count(g->values[v->first]->shape) * (int64_t)sizeof(float);
}

static bool is_sharded(const ls_graph *g, const ls_var *v)
{
    return v->role == LS_VAR_PARAM && g->values[v->first]->dtype == LS_F32 &&
           ls_shape_count(g->values[v->first]->shape) > 0;
}

/* Bytes of the parameters from variable i on that belong together by their names; *end is behind the last. */
static int64_t run_of(const ls_graph *g, int32_t i, int32_t *end)
{
    const ls_var *first = g->vars[i];
    int64_t bytes = 0;

    for (*end = i; *end < g->n_vars; ++*end) {
        const ls_var *v = g->vars[*end];
        if (!is_sharded(g, v)) continue;
        if (!same_unit(first, v)) break;
        bytes += bytes_of(g, v);
    }
    return bytes;
}

/* Neighbours join as long as they are small together. */
static void number_units(sharding *s)
{
    const ls_graph *g = s->from;
    const int64_t most = s->how->bucket_bytes > 0 ? s->how->bucket_bytes : UNIT_BYTES;
    int64_t filled = 0;
    int32_t unit = 0;

    for (int32_t i = 0, end; i < g->n_vars; i = end) {
        s->unit[i] = -1;
        end = i + 1;
        if (!is_sharded(g, g->vars[i])) continue;
        const int64_t bytes = run_of(g, i, &end);
        if (filled > 0 && filled + bytes > most) unit++, filled = 0;
        filled += bytes;
        for (int32_t k = i; k < end; k++) s->unit[k] = is_sharded(g, g->vars[k]) ? unit : -1;
    }
}

/* -- gathers ----------------------------------------------------------------------------------------------
 */

static const whole *find(const sharding *s, int32_t piece)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->list[i].piece == piece) return &s->list[i];
    return NULL;
}

static bool keep(sharding *s, ls_graph *to, int32_t piece, int32_t all)
{
    if (s->n == s->cap) {
        const int32_t cap = 2 * s->cap + 64;
        whole *more = ls_arena_alloc(to->arena, sizeof *more * (size_t)cap);
        if (more == NULL) return false;
        if (s->n > 0) memcpy(more, s->list, sizeof *more * (size_t)s->n);
        s->list = more;
        s->cap = cap;
    }
    s->list[s->n++] = (whole){piece, all};
    return true;
}

/* The variable of the new graph, of which values know the number. */
static const ls_var *variable(const ls_graph *to, ls_value v)
{
    const int32_t var = to->values[v.id]->var;

    return var >= 0 && to->vars[var]->home == LS_HOME_SHARDED && to->vars[var]->role == LS_VAR_PARAM
               ? to->vars[var]
               : NULL;
}

/* What goes with `wanted`: its unit as it is now, as far as it is not there yet.  An older version goes
 * alone. */
static int members(const sharding *s, const ls_graph *to, ls_value wanted, ls_value *x)
{
    const int32_t unit = s->unit[to->values[wanted.id]->var];
    int n = 0;

    x[n++] = wanted;
    if (variable(to, wanted)->current != wanted.id) return n;
    for (int32_t i = 0; i < to->n_vars; i++)
        if (s->unit[i] == unit && to->vars[i]->current != wanted.id && find(s, to->vars[i]->current) == NULL)
            x[n++] = (ls_value){(ls_graph *)(uintptr_t)to, to->vars[i]->current};
    return n;
}

static ls_value all_of(sharding *s, ls_graph *to, ls_value piece)
{
    const ls_collective_attr attr = {.bucket = -1, .group = s->how->group, .ranks = s->how->pieces};
    const whole *known = find(s, piece.id);
    ls_value *x = ls_arena_alloc(to->arena, sizeof *x * 2 * ((size_t)s->n_vars + 1)), all;
    int n;

    if (known != NULL) return (ls_value){to, known->all};
    if (x == NULL) return ls_graph_fail(to, LS_NOMEM, "step: no memory");
    n = members(s, to, piece, x);
    all = ls_all_gather(n, x, attr, x + n);
    for (int i = 0; i < n && ls_value_ok(all); i++) {
        const ls_value y = lsi_gathered(ls_graph_out(all, i), variable(to, x[i])->whole);
        if (!ls_value_ok(y)) return y;
        to->values[ls_graph_out(all, i).id]->category = to->values[y.id]->category = LS_CAT_WEIGHT;
        if (!keep(s, to, x[i].id, y.id)) return ls_graph_fail(to, LS_NOMEM, "step: no memory");
    }
    known = find(s, piece.id);
    return known != NULL ? (ls_value){to, known->all} : (ls_value){to, -1};
}

/* -- the pass ---------------------------------------------------------------------------------------------
 */

/* An update works on the piece; all else on the whole. */
static bool takes_piece(const ls_node *n, int k)
{
    return n->op == &ls_op_update && k >= LS_UPDATE_W && k < LS_UPDATE_W + n->n_out;
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    sharding *s = ctx;
    ls_value *now = ls_arena_alloc(to->arena, sizeof *now * ((size_t)n->n_in + 1)), first;
    bool changed = n->op == &ls_op_update; /* what it makes has the shape of a piece */

    if (now == NULL) {
        lsi_no_memory(to);
        return true;
    }
    for (int k = 0; k < n->n_in; k++) {
        now[k] = in[k];
        if (takes_piece(n, k) || variable(to, in[k]) == NULL) continue;
        now[k] = all_of(s, to, in[k]);
        changed = true;
        if (!lsi_sound(to)) return true;
    }
    if (!changed) return false;
    first = ls_graph_add(to, n->op, n->n_in, now, n->attr);
    for (int k = 0; k < n->n_out && ls_value_ok(first); k++) {
        out[k] = ls_graph_out(first, k);
        to->values[out[k].id]->category = s->from->values[n->out[k]]->category;
    }
    return true;
}

/* Variables become pieces: the new graph has them as they are in the old one when it is made. */
static void cut_variables(ls_graph *g, const ls_strategy *how)
{
    for (int32_t i = 0; i < g->n_vars; i++) {
        ls_var *v = g->vars[i];
        ls_vinfo *first = g->values[v->first];
        if (!is_sharded(g, v)) continue;
        lsi_cut(v, how, first->shape);
        first->shape = LS_SHAPE(ls_exchange_piece(ls_shape_count(first->shape), how->pieces));
    }
}

void ls_pass_shard(ls_graph *g, const ls_strategy *how)
{
    const ls_strategy copy = *how;
    sharding s = {.from = g, .how = &copy, .n_vars = g->n_vars};

    if (!lsi_sound(g)) return;
    s.unit = ls_alloc(LS_MEM_GRAPH, sizeof *s.unit * ((size_t)g->n_vars + 1));
    if (s.unit == NULL) {
        lsi_no_memory(g);
        return;
    }
    number_units(&s);
    cut_variables(g, how);
    ls_graph_rewrite_declared(g, expand, &s);
    ls_free(s.unit);
}
