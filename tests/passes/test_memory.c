/* test_memory.c: on random graphs, no two values that are needed at the same time share memory, unless they
 * may. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "check.h"
#include "ops/ops.h"
#include "passes/passes.h"

typedef struct span {
    int32_t made, last; /* positions in the schedule; -1 before the first, n after the last */
} span;

static uint32_t draw(uint32_t seed, uint32_t *i, uint32_t limit)
{
    ls_rng_key key = {seed, 0, 0, 0};

    return ls_rng_word(&key, 1, 0, (*i)++) % limit;
}

/* A few dozen element-wise ops, views, sums and updates over random earlier values. */
static ls_graph *random_graph(uint32_t seed)
{
    ls_graph *g;
    ls_value v[64];
    uint32_t i = 0;
    int n = 0;

    CHECK(ls_graph_create(&g, NULL) == LS_OK);
    v[n++] = ls_graph_input(g, "x", LS_F32, LS_SHAPE(4, 6));
    v[n++] = ls_graph_var(g, "w", LS_VAR_PARAM, LS_F32, LS_SHAPE(4, 6), (ls_init){LS_INIT_CONST, 1});
    while (n < 40) {
        ls_value a = v[draw(seed, &i, (uint32_t)n)], b = v[draw(seed, &i, (uint32_t)n)];
        switch (draw(seed, &i, 6)) {
        case 0: v[n++] = ls_add(a, b); break;
        case 1: v[n++] = ls_relu(a); break;
        case 2: v[n++] = ls_mul(a, b); break;
        case 3: v[n++] = ls_reshape(ls_relu(ls_reshape(a, LS_SHAPE(24))), LS_SHAPE(4, 6)); break;
        case 4: v[n++] = ls_sub(a, ls_reduce_sum(b, 1u, true)); break;
        default: v[n++] = ls_transpose(ls_transpose(a, (int[]){1, 0}), (int[]){1, 0}); break;
        }
    }
    ls_graph_fetch(v[n - 1], "y");
    ls_graph_fetch(ls_reduce_sum(v[n / 2], LS_ALL_AXES, false), "s");
    CHECK(ls_graph_status(g, NULL) == LS_OK);
    ls_pass_dead(g);
    return g;
}

/* Lifetimes computed the slow, obvious way: a view's use is a use of what it views. */
static void lifetimes(const ls_graph *g, const ls_schedule *s, span *life)
{
    for (int32_t i = 0; i < g->n_values; i++) life[i] = (span){-2, -2};
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->kind == LS_VALUE_INPUT) life[i] = (span){-1, s->n};
    for (int32_t pos = 0; pos < s->n; pos++) {
        const ls_node *n = g->nodes[s->order[pos]];
        for (int k = 0; k < n->n_out; k++) life[n->out[k]] = (span){pos, pos};
        for (int k = 0; k < n->n_in; k++)
            for (int32_t v = n->in[k];;) {
                const ls_node *p = g->values[v]->node >= 0 ? g->nodes[g->values[v]->node] : NULL;
                if (life[v].last < pos) life[v].last = pos;
                if (p == NULL || !(p->op->flags & LS_OP_VIEW)) break;
                v = p->in[0];
            }
    }
    for (int32_t i = 0; i < g->n_values; i++)
        if (g->values[i]->fetch) life[i].last = s->n;
}

/* Whether node a's result goes into node b, on whatever way. */
static bool leads_to(const ls_graph *g, int32_t a, int32_t b)
{
    for (int k = 0; k < g->nodes[b]->n_in; k++) {
        const int32_t from = g->values[g->nodes[b]->in[k]]->node;
        if (from >= 0 && (from == a || (from > a && leads_to(g, a, from)))) return true;
    }
    return false;
}

static bool uses(const ls_graph *g, const ls_memory *m, int32_t node, int32_t buffer)
{
    const ls_node *n = g->nodes[node];

    for (int k = 0; k < n->n_in + n->n_out; k++)
        if (m->buffer_of[k < n->n_in ? n->in[k] : n->out[k - n->n_in]] == buffer) return true;
    return false;
}

/* A node that writes to memory which another has used shortly before comes after that anyway. */
static void check_apart(const ls_graph *g, const ls_schedule *s, const ls_memory *m)
{
    for (int32_t a = 0; a < m->n_buffers; a++)
        for (int32_t b = 0; b < m->n_buffers; b++) {
            const ls_memory_buffer *x = &m->buffers[a], *y = &m->buffers[b];
            const bool shared = x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
            if (!shared || y->first <= x->last || y->first > x->last + m->apart || y->first >= s->n) continue;
            for (int32_t p = 0; p <= x->last; p++)
                if (uses(g, m, s->order[p], a)) CHECK(leads_to(g, s->order[p], s->order[y->first]));
        }
}

static void check_graph(uint32_t seed, bool side_by_side)
{
    ls_graph *g = random_graph(seed);
    ls_schedule s;
    ls_memory m;
    size_t *bytes = calloc((size_t)g->n_values, sizeof *bytes), *scratch = NULL, sum = 0;
    span *life = calloc((size_t)g->n_values, sizeof *life);

    CHECK(ls_pass_schedule(g, &s, NULL) == LS_OK);
    scratch = calloc((size_t)s.n + 1, sizeof *scratch);
    for (int32_t i = 0; i < g->n_values; i++) bytes[i] = (size_t)ls_shape_count(g->values[i]->shape) * 4;
    for (int32_t i = 0; i < s.n; i++) scratch[i] = (size_t)(i % 3) * 100;
    s.side_by_side = side_by_side;
    CHECK(ls_pass_memory(g, &s, bytes, scratch, &m, NULL) == LS_OK);
    CHECK_EQ_INT(m.apart, side_by_side ? 40 : 0); /* so small a graph has room enough */
    if (side_by_side) check_apart(g, &s, &m);
    lifetimes(g, &s, life);
    for (int32_t a = 0; a < g->n_values; a++)
        for (int32_t b = 0; b < g->n_values; b++) {
            bool overlap;
            if (a == b || life[a].made == -2 || life[b].made < 0 || m.var[a] >= 0 || m.var[b] >= 0) continue;
            if (life[a].made > life[b].made || life[a].last < life[b].made) continue;
            overlap = m.offset[a] < m.offset[b] + bytes[b] && m.offset[b] < m.offset[a] + bytes[a];
            if (life[a].last == life[b].made) { /* b may be written over a operand that dies there, exactly */
                const ls_node *n = g->nodes[g->values[b]->node];
                CHECK(!overlap || ((n->op->flags & LS_OP_INPLACE) && m.offset[a] == m.offset[b]));
            } else {
                CHECK(!overlap);
            }
        }
    for (int32_t i = 0; i < g->n_values; i++)
        if (life[i].made != -2 && m.var[i] < 0) CHECK(m.offset[i] + bytes[i] <= m.arena_bytes);
    for (int32_t i = 0; i < s.n; i++) {
        CHECK(m.scratch[i] + scratch[i] <= m.arena_bytes);
        for (int32_t v = 0; v < g->n_values && scratch[i] > 0; v++) {
            if (life[v].made == -2 || m.var[v] >= 0 || life[v].made > i || life[v].last < i) continue;
            CHECK(m.offset[v] >= m.scratch[i] + scratch[i] || m.scratch[i] >= m.offset[v] + bytes[v]);
        }
    }
    for (int c = 0; c < LS_CAT_N; c++) sum += m.by_category[c];
    CHECK_EQ_INT((long long)sum, (long long)m.arena_bytes);
    /* What the host touches between runs, and nobody's scratch, is in the first part. */
    CHECK(m.kept_bytes > 0 && m.kept_bytes <= m.arena_bytes);
    for (int32_t i = 0; i < g->n_values; i++)
        if ((g->values[i]->fetch || g->values[i]->kind == LS_VALUE_INPUT) && m.offset[i] != LS_IN_STATE)
            CHECK(m.offset[i] + bytes[i] <= m.kept_bytes);
    for (int32_t i = 0; i < s.n; i++) CHECK(scratch[i] == 0 || m.scratch[i] >= m.kept_bytes);
    ls_memory_release(&m);
    ls_schedule_release(&s);
    ls_graph_destroy(g);
    free(bytes);
    free(scratch);
    free(life);
}

static void random_graphs_share_only_what_is_dead(void)
{
    for (uint32_t seed = 1; seed <= 200; seed++) check_graph(seed, seed % 2 == 0);
}

int main(void)
{
    CHECK_RUN(random_graphs_share_only_what_is_dead);
    return CHECK_DONE();
}
