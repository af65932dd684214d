/* pointwise.c: element-wise ops: single ones with broadcasting, and fused chains.
 *
 * A chain is interpreted over tiles that stay in the innermost cache: one call per step and tile, with the
 * inputs read in place, intermediate registers in a few buffers on the stack, and the last step writing to
 * the output.  Registers that depend on single elements only are computed once per tile as one element.
 * Tensors stored in 16 bits are converted tile by tile; each has a type of its own. */
#include "backend/cpu/pointwise.h"

#include "backend/cpu/kernel_util.h"
#include "backend/cpu/move.h"
#include "backend/cpu/planners.h"

#define TILE  1024 /* floats; a few buffers of 4 KB fit the innermost cache */
#define PIECE (8 * TILE)

/* -- elements in 16 bits
 * ------------------------------------------------------------------------------------ */

static bool is_float(ls_dtype t)
{
    return t == LS_F32 || t == LS_BF16 || t == LS_F16;
}

static const void *element_at(const void *base, ls_dtype t, int64_t at)
{
    return (const char *)base + at * (t == LS_F32 ? 4 : 2);
}

/* n elements from `at` on, as floats: where they lie, or in `buffer`. */
static const float *read_floats(const lsi_move_table *move, const void *base, ls_dtype t, int64_t at,
                                int64_t n, float *buffer)
{
    const void *from = element_at(base, t, at);

    if (t == LS_F32) return from;
    (t == LS_BF16 ? move->bf16_to_f32 : move->f16_to_f32)(buffer, from, n);
    return buffer;
}

static void write_floats(const lsi_move_table *move, void *base, ls_dtype t, int64_t at, int64_t n,
                         const float *from)
{
    uint16_t *to = (uint16_t *)base + at;

    (t == LS_BF16 ? move->bf16_from_f32 : move->f16_from_f32)(to, from, n);
}

/* -- chains ------------------------------------------------------------------------------------------- */

typedef struct chain_step {
    lsi_pw_fn fn;
    int a, b;   /* registers */
    int sa, sb; /* their strides */
    int buffer; /* where the result goes; -1: the output */
    bool one;   /* the result is a single element */
    float p[2];
} chain_step;

typedef struct chain {
    int n_in, n_steps, threads;
    int64_t count;
    int stride[LS_PW_MAX_INPUTS];
    ls_dtype in[LS_PW_MAX_INPUTS], out;
    const lsi_move_table *move;
    chain_step step[LS_PW_MAX_STEPS];
} chain;

typedef struct chain_call {
    const chain *c;
    const ls_call *call;
    ls_parallel_shares shares;
} chain_call;

/* Room for what a tile needs: results of steps, then inputs that are not f32. */
typedef float buffers[LS_PW_MAX_STEPS + LS_PW_MAX_INPUTS][TILE];

static void run_tile(const chain *c, const ls_call *call, int64_t at, int64_t n, buffers buffer)
{
    const float *reg[LS_PW_MAX_INPUTS + LS_PW_MAX_STEPS];
    float *o = NULL;

    for (int i = 0; i < c->n_in; i++)
        reg[i] = read_floats(c->move, call->in[i], c->in[i], at * c->stride[i], c->stride[i] ? n : 1,
                             buffer[LS_PW_MAX_STEPS + i]);
    for (int i = 0; i < c->n_steps; i++) {
        const chain_step *s = &c->step[i];
        if (s->buffer >= 0)
            o = buffer[s->buffer];
        else
            o = c->out == LS_F32 ? (float *)call->out[0] + at : buffer[LS_PW_MAX_STEPS - 1];
        s->fn(o, reg[s->a], reg[s->b], s->sa, s->sb, s->one ? 1 : n, s->p[0], s->p[1]);
        reg[c->n_in + i] = o;
    }
    if (c->out != LS_F32) write_floats(c->move, call->out[0], c->out, at, n, o);
}

static void chain_thread(int thread, int n_threads, void *arg)
{
    chain_call *j = arg;
    buffers buffer __attribute__((aligned(64)));
    ls_parallel_walk w = ls_parallel_walk_begin(&j->shares, thread, n_threads);
    const int64_t pieces = j->c->count / w.n / PIECE + 1;

    for (int64_t piece; (piece = ls_parallel_walk_next(&w, pieces)) >= 0;) {
        int64_t lo, hi, end;
        ls_parallel_range_grain(j->c->count, 16, w.share, w.n, &lo, &hi);
        lo += piece * PIECE;
        end = piece == pieces - 1 || hi - lo < PIECE ? hi : lo + PIECE;
        for (; lo < end; lo += TILE) run_tile(j->c, j->call, lo, end - lo < TILE ? end - lo : TILE, buffer);
    }
}

static void chain_run(void *state, const ls_call *call)
{
    chain_call j = {.c = state, .call = call};

    if (j.c->count > 0) ls_parallel_run(j.c->threads, chain_thread, &j);
}

/* The step after which a register is not read any more. */
static int last_use(const ls_pointwise_attr *a, int reg)
{
    int last = -1;

    for (int i = 0; i < a->n_steps; i++)
        if (a->step[i].a == reg || a->step[i].b == reg) last = i;
    return last;
}

/* Gives every intermediate register a buffer that nobody needs any more, so that few are in use. */
static void assign_buffers(chain *c, const ls_pointwise_attr *a)
{
    int free_after[LS_PW_MAX_STEPS]; /* the step after which the buffer is free */

    for (int i = 0; i < LS_PW_MAX_STEPS; i++) free_after[i] = -1;
    for (int i = 0; i < c->n_steps - 1; i++) {
        int b = 0;
        while (free_after[b] > i) b++; /* a result may take the place of an operand that dies here */
        c->step[i].buffer = b;
        free_after[b] = last_use(a, c->n_in + i);
    }
    c->step[c->n_steps - 1].buffer = -1;
}

static void translate(chain *c, const ls_pointwise_attr *a, const lsi_pw_table *table)
{
    int stride[LS_PW_MAX_INPUTS + LS_PW_MAX_STEPS];

    memcpy(stride, c->stride, sizeof c->stride);
    c->n_steps = a->n_steps;
    for (int i = 0; i < a->n_steps; i++) {
        chain_step *s = &c->step[i];
        bool binary = ls_pw_is_binary(a->step[i].pw);
        bool last = i == a->n_steps - 1;
        *s = (chain_step){.fn = table->fn[a->step[i].pw],
                          .a = a->step[i].a,
                          .b = binary ? a->step[i].b : a->step[i].a,
                          .p = {(float)a->step[i].p[0], (float)a->step[i].p[1]}};
        s->sa = stride[s->a];
        s->sb = stride[s->b];
        s->one = !s->sa && !s->sb && !last;
        stride[c->n_in + i] = s->one ? 0 : 1;
    }
    assign_buffers(c, a);
}

/* Every input is a float, in the output's layout unless it is a single element. */
static bool chain_fits(const ls_graph *g, const ls_node *n, chain *c)
{
    const ls_vinfo *y = lsi_out(g, n, 0);

    c->count = ls_shape_count(y->shape);
    c->n_in = n->n_in;
    c->out = y->dtype;
    c->move = LSI_PICK(lsi_move_avx512, lsi_move_avx2);
    if (!is_float(y->dtype) || n->n_in > LS_PW_MAX_INPUTS) return false;
    for (int i = 0; i < n->n_in; i++) {
        const ls_vinfo *x = lsi_in(g, n, i);
        int64_t count = ls_shape_count(x->shape);
        c->in[i] = x->dtype;
        if (!is_float(x->dtype)) return false;
        if (count != c->count && count != 1) return false;
        if (count == c->count && count > 1 && x->layout != y->layout) return false;
        c->stride[i] = count == c->count ? 1 : 0;
    }
    return true;
}

static ls_status plan_chain(ls_device *dev, const chain *from, const ls_pointwise_attr *a,
                            const lsi_pw_table *table, ls_kernel *out, ls_err *err)
{
    chain c = *from;

    c.threads = lsi_threads_for(dev, c.count);
    translate(&c, a, table);
    return lsi_kernel_make(out, chain_run, &c, sizeof c, 0, table->impl, err);
}

ls_status lsi_plan_pointwise(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const lsi_pw_table *table = LSI_PICK(lsi_pw_avx512, lsi_pw_avx2);
    chain c = {0};

    if (table == NULL || !chain_fits(g, n, &c)) return LS_UNSUPPORTED;
    return plan_chain(dev, &c, n->attr, table, out, err);
}

/* -- single ops with broadcasting ---------------------------------------------------------------------- */

/* The result's dimensions, merged where both operands step through them as through one; strides in floats. */
typedef struct grid {
    int rank;
    int64_t dim[LS_MAX_RANK], a[LS_MAX_RANK], b[LS_MAX_RANK];
    int64_t count;
    lsi_pw_fn fn;
    float p[2];
    int threads;
    ls_dtype a_type, b_type, out;
    const lsi_move_table *move;
} grid;

static void operand_strides(ls_shape x, ls_shape y, int64_t *stride)
{
    int64_t step = 1;

    for (int i = y.rank - 1; i >= 0; i--) {
        int k = i - (y.rank - x.rank);
        stride[i] = k < 0 || x.dim[k] == 1 ? 0 : step;
        if (k >= 0) step *= x.dim[k];
    }
}

/* Fills dim, a and b; the last dimension has strides 0 or 1. */
static void make_grid(grid *d, ls_shape a, ls_shape b, ls_shape y)
{
    int64_t sa[LS_MAX_RANK], sb[LS_MAX_RANK];

    operand_strides(a, y, sa);
    operand_strides(b, y, sb);
    d->rank = 0;
    for (int i = 0; i < y.rank; i++) {
        int r = d->rank - 1;
        if (y.dim[i] == 1) continue;
        if (r >= 0 && d->a[r] == sa[i] * y.dim[i] && d->b[r] == sb[i] * y.dim[i]) {
            d->dim[r] *= y.dim[i];
        } else {
            r = d->rank++;
            d->dim[r] = y.dim[i];
        }
        d->a[r] = sa[i];
        d->b[r] = sb[i];
    }
    if (d->rank == 0) {
        d->dim[0] = 1;
        d->a[0] = d->b[0] = 0;
        d->rank = 1;
    }
}

typedef struct grid_call {
    const grid *d;
    const void *a, *b;
    void *y;
} grid_call;

static void grid_thread(int thread, int n_threads, void *arg)
{
    const grid_call *j = arg;
    const grid *d = j->d;
    int last = d->rank - 1;
    const bool wide = d->a_type == LS_F32 && d->b_type == LS_F32 && d->out == LS_F32;
    float buffer[3][TILE] __attribute__((aligned(64)));
    int64_t length = d->dim[last], lo, hi;

    ls_parallel_range_grain(d->count, 16, thread, n_threads, &lo, &hi);
    while (lo < hi) {
        int64_t col = lo % length, rest = lo / length, a = col * d->a[last], b = col * d->b[last];
        int64_t n = length - col < hi - lo ? length - col : hi - lo;
        const float *from_a, *from_b;
        if (!wide && n > TILE) n = TILE;
        for (int i = last - 1; i >= 0; i--) {
            a += rest % d->dim[i] * d->a[i];
            b += rest % d->dim[i] * d->b[i];
            rest /= d->dim[i];
        }
        from_a = read_floats(d->move, j->a, d->a_type, a, d->a[last] ? n : 1, buffer[0]);
        from_b = read_floats(d->move, j->b, d->b_type, b, d->b[last] ? n : 1, buffer[1]);
        d->fn(d->out == LS_F32 ? (float *)j->y + lo : buffer[2], from_a, from_b, (int)d->a[last],
              (int)d->b[last], n, d->p[0], d->p[1]);
        if (d->out != LS_F32) write_floats(d->move, j->y, d->out, lo, n, buffer[2]);
        lo += n;
    }
}

static void grid_run(void *state, const ls_call *call)
{
    const grid *d = state;
    grid_call j = {d, call->in[0], call->in[1], call->out[0]};

    if (d->count > 0) ls_parallel_run(d->threads, grid_thread, &j);
}

/* False unless all is plain and floats. */
static bool set_types(const ls_graph *g, const ls_node *n, grid *d)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        if (!is_float(v->dtype) || v->layout != &ls_layout_plain) return false;
    }
    d->a_type = lsi_in(g, n, 0)->dtype;
    d->b_type = n->n_in > 1 ? lsi_in(g, n, 1)->dtype : LS_F32; /* there is none, and nobody reads it */
    d->out = lsi_out(g, n, 0)->dtype;
    d->move = LSI_PICK(lsi_move_avx512, lsi_move_avx2);
    return true;
}

ls_status lsi_plan_elementwise(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                               ls_err *err)
{
    const lsi_pw_table *table = LSI_PICK(lsi_pw_avx512, lsi_pw_avx2);
    const ls_pw_attr *p = n->op->attr_size > 0 ? n->attr : NULL;
    ls_pointwise_attr a = {.n_steps = 1};
    chain c = {0};
    grid d = {0};

    if (table == NULL) return LS_UNSUPPORTED;
    a.step[0].pw = n->op->pw;
    a.step[0].b = n->n_in > 1 ? 1 : 0;
    for (int i = 0; i < 2; i++) a.step[0].p[i] = p != NULL ? p->p[i] : 0;
    if (chain_fits(g, n, &c)) return plan_chain(dev, &c, &a, table, out, err);
    if (!set_types(g, n, &d) || n->n_in != 2) return LS_UNSUPPORTED;
    make_grid(&d, lsi_in(g, n, 0)->shape, lsi_in(g, n, 1)->shape, lsi_out(g, n, 0)->shape);
    d.count = ls_shape_count(lsi_out(g, n, 0)->shape);
    d.threads = lsi_threads_for(dev, d.count);
    d.fn = table->fn[n->op->pw];
    for (int i = 0; i < 2; i++) d.p[i] = (float)a.step[0].p[i];
    return lsi_kernel_make(out, grid_run, &d, sizeof d, 0, table->impl, err);
}

/* broadcast_to is a copy whose operand has the strides of broadcasting. */
ls_status lsi_plan_broadcast_to(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err)
{
    const lsi_pw_table *table = LSI_PICK(lsi_pw_avx512, lsi_pw_avx2);
    ls_shape y = lsi_out(g, n, 0)->shape;
    grid d = {.count = ls_shape_count(y), .threads = lsi_threads_for(dev, ls_shape_count(y))};

    if (table == NULL || !set_types(g, n, &d)) return LS_UNSUPPORTED;
    make_grid(&d, lsi_in(g, n, 0)->shape, LS_SHAPE_SCALAR, y);
    d.fn = table->fn[LS_PW_COPY];
    return lsi_kernel_make(out, grid_run, &d, sizeof d, 0, table->impl, err);
}
