/* shard.c: weights that ranks keep in pieces (fsdp, hybrid), and where they are gathered.
 *
 * Needs: ops as they will be computed, no gradients yet.  Leaves: parameters as variables that are this
 * rank's piece, gathers before whoever reads all of one, and updates that read and make pieces.
 *
 * What is gathered together is a unit: the parameters of a transformer block or of a residual block, or of
 * neighbours that are small.  The trial's marks say what belongs together (ls_unit_begin): a parameter is of
 * the unit that reads it first.  Where a trial has not marked what reads a parameter, its name says it:
 * "blocks.3.attn.qkv.weight" belongs to "blocks.3", "layer1.0.conv1.weight" to "layer1", "fc.bias" to "fc".
 * A unit is gathered where the program first reads something of it, and again after an update.  What
 * gradients read of it they gather anew (differentiate.c), so that between the two the memory is free.
 *
 * What everybody reads in 16 bits (precision.c) is gathered in 16 bits: each rank casts its piece, half as
 * much travels, and half as much lies in memory.  Gradients are then of the 16 bits, as those of a cast are,
 * and become fp32 before they are added up.  Vectors travel as they are: a device whose kernels see through
 * casts adds biases unrounded, and a strategy must not compute something else; they are few bytes.  Who reads
 * a parameter through what moves it around reads it all the same: with one sample there may be nothing to be
 * moved, and ranks must gather alike. */
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
    int32_t *mark; /* per variable of `from`: the marked unit that reads it first; 0: none does */
    bool *narrow;  /* per variable: it is gathered in the strategy's low type */
    int32_t *unit; /* per variable, which the new graph numbers alike; -1: is whole */
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

static bool same_name(const ls_var *a, const ls_var *b)
{
    const size_t n = unit_name(a->name);

    return n == unit_name(b->name) && memcmp(a->name, b->name, n) == 0;
}

/* Whether variables a and b belong together: by marks, and by their names where there are none. */
static bool same_unit(const sharding *s, int32_t a, int32_t b)
{
    if (s->mark[a] != s->mark[b]) return false;
    return s->mark[a] > 0 || same_name(s->from->vars[a], s->from->vars[b]);
}

static void find_marks(const sharding *s)
{
    const ls_graph *g = s->from;

    for (int32_t i = 0; i < g->n_vars; i++) s->mark[i] = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; g->nodes[i]->unit > 0 && k < g->nodes[i]->n_in; k++) {
            const int32_t var = g->values[g->nodes[i]->in[k]]->var;
            if (var >= 0 && s->mark[var] == 0) s->mark[var] = g->nodes[i]->unit;
        }
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

/* Bytes of the parameters from variable i on that belong together; *end is behind the last. */
static int64_t run_of(const sharding *s, int32_t i, int32_t *end)
{
    const ls_graph *g = s->from;
    int64_t bytes = 0;

    for (*end = i; *end < g->n_vars; ++*end) {
        const ls_var *v = g->vars[*end];
        if (!is_sharded(g, v)) continue;
        if (!same_unit(s, i, *end)) break;
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
        const int64_t bytes = run_of(s, i, &end);
        if (filled > 0 && filled + bytes > most) unit++, filled = 0;
        filled += bytes;
        for (int32_t k = i; k < end; k++) s->unit[k] = is_sharded(g, g->vars[k]) ? unit : -1;
    }
}

/* -- sixteen bits -------------------------------------------------------------------------------------------
 */

/* An update works on the piece; all else on the whole. */
static bool takes_piece(const ls_node *n, int k)
{
    return n->op == &ls_op_update && k >= LS_UPDATE_W && k < LS_UPDATE_W + n->n_out;
}

static bool only_moves(const ls_op *op)
{
    return op == &ls_op_reshape || op == &ls_op_broadcast_to || op == &ls_op_slice || op == &ls_op_transpose;
}

static bool casts_to(const ls_node *n, ls_dtype low)
{
    return n->op == &ls_op_cast && ((const ls_cast_attr *)n->attr)->to == low;
}

/* Parameters that are read through casts to the low type alone.  `is`: per value, the variable that it is, in
 * whatever shape, or -1. */
static void find_narrow(const sharding *s, bool *wide, int32_t *is)
{
    const ls_graph *g = s->from;
    const ls_dtype low = s->how->compute;

    for (int32_t i = 0; i < g->n_vars; i++) s->narrow[i] = wide[i] = false;
    for (int32_t i = 0; i < g->n_values; i++) {
        is[i] = g->values[i]->var;
        if (is[i] >= 0 && g->values[i]->fetch) wide[is[i]] = true;
    }
    for (int32_t i = 0; i < g->n_nodes && low != LS_F32; i++) {
        const ls_node *n = g->nodes[i];
        for (int k = 0; !n->dead && k < n->n_in; k++) {
            const int32_t var = is[n->in[k]];
            if (var < 0 || takes_piece(n, k) || n->op == &ls_op_gradients) continue;
            if (casts_to(n, low))
                s->narrow[var] = true;
            else if (only_moves(n->op) && k == 0 && !g->values[n->out[0]]->fetch)
                is[n->out[0]] = var;
            else
                wide[var] = true;
        }
    }
    for (int32_t i = 0; i < g->n_vars; i++)
        s->narrow[i] = s->narrow[i] && !wide[i] && g->values[g->vars[i]->first]->shape.rank > 1;
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

/* What this rank gives of a piece. */
static ls_value given_of(const sharding *s, ls_graph *to, ls_value piece)
{
    const ls_value y = s->narrow[to->values[piece.id]->var] ? ls_cast(piece, s->how->compute) : piece;

    if (ls_value_ok(y)) to->values[y.id]->category = LS_CAT_WEIGHT;
    return y;
}

static ls_value all_of(sharding *s, ls_graph *to, ls_value piece)
{
    const ls_collective_attr attr = {.bucket = -1, .group = s->how->group, .ranks = s->how->pieces};
    const whole *known = find(s, piece.id);
    const size_t most = (size_t)s->n_vars + 1;
    ls_value *x, *given, all;
    int n;

    if (known != NULL) return (ls_value){to, known->all};
    x = ls_arena_alloc(to->arena, sizeof *x * 2 * most);
    given = ls_arena_alloc(to->arena, sizeof *given * most);
    if (x == NULL || given == NULL) return ls_graph_fail(to, LS_NOMEM, "step: no memory");
    n = members(s, to, piece, x);
    for (int i = 0; i < n; i++) given[i] = given_of(s, to, x[i]);
    all = ls_all_gather(n, given, attr, x + n);
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

/* The same node with other inputs.  Gradients of 16 bits are made fp32 for whoever adds them up. */
static void add_again(const sharding *s, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    ls_value first;

    if (n->op == &ls_op_gradients) {
        ls_gradients_attr a = *(const ls_gradients_attr *)n->attr;
        a.wide = true;
        first = ls_graph_add(to, n->op, n->n_in, in, &a);
    } else {
        first = ls_graph_add(to, n->op, n->n_in, in, n->attr);
    }
    for (int k = 0; k < n->n_out && ls_value_ok(first); k++) {
        out[k] = ls_graph_out(first, k);
        to->values[out[k].id]->category = s->from->values[n->out[k]]->category;
    }
}

static bool expand(void *ctx, ls_graph *to, const ls_node *n, const ls_value *in, ls_value *out)
{
    sharding *s = ctx;
    ls_value *now = ls_arena_alloc(to->arena, sizeof *now * ((size_t)n->n_in + 1));
    bool changed = n->op == &ls_op_update; /* what it makes has the shape of a piece */

    if (now == NULL) {
        lsi_no_memory(to);
        return true;
    }
    for (int k = 0; k < n->n_in; k++) {
        now[k] = in[k];
        changed = changed || ls_value_dtype(in[k]) != s->from->values[n->in[k]]->dtype;
        if (takes_piece(n, k) || variable(to, in[k]) == NULL) continue;
        now[k] = all_of(s, to, in[k]);
        changed = true;
        if (!lsi_sound(to)) return true;
    }
    if (!changed) return false;
    if (n->op == &ls_op_cast && casts_to(n, ls_value_dtype(now[0])) && !s->from->values[n->out[0]]->fetch)
        out[0] = now[0]; /* it was gathered so */
    else
        add_again(s, to, n, now, out);
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
    const size_t vars = (size_t)g->n_vars + 1;
    bool *wide;
    int32_t *is;

    if (!lsi_sound(g)) return;
    s.unit = ls_arena_alloc(g->arena, sizeof *s.unit * vars);
    s.mark = ls_arena_alloc(g->arena, sizeof *s.mark * vars);
    s.narrow = ls_arena_alloc(g->arena, sizeof *s.narrow * vars);
    wide = ls_arena_alloc(g->arena, sizeof *wide * vars);
    is = ls_arena_alloc(g->arena, sizeof *is * ((size_t)g->n_values + 1));
    if (s.unit == NULL || s.mark == NULL || s.narrow == NULL || wide == NULL || is == NULL) {
        lsi_no_memory(g);
        return;
    }
    find_marks(&s);
    find_narrow(&s, wide, is);
    number_units(&s);
    cut_variables(g, how);
    ls_graph_rewrite_declared(g, expand, &s);
}
