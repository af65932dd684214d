/* region_plan.c: where everything of a region lies, and how its work is cut.
 *
 * A sample's memory is planned like a plan's arena: a place lives from the node that makes it to the last
 * that reads it.  What nodes want of a place (zeros around an image, channels in different banks) is
 * collected first. */
#include <string.h>

#include "backend/cuda/region.h"

enum {
    ROOM = 12288,        /* floats for parts of sums, at most, */
    ROOM_OF_MANY = 4096, /* and where several blocks share a processor */
    SOME_WEIGHTS = 4096, /* floats that are kept in shared memory even if that leaves room for fewer blocks */
};

/* -- values and places ------------------------------------------------------------------------------------
 */

static lsi_region_value *find(const lsi_region *r, int32_t id)
{
    for (int i = 0; i < r->n_values; i++)
        if (r->value[i].id == id) return (lsi_region_value *)&r->value[i];
    return NULL;
}

const lsi_region_value *lsi_region_value_of(const lsi_region *r, int32_t id)
{
    return find(r, id);
}

static int place_in(const int32_t *list, int n, int32_t id)
{
    for (int i = 0; i < n; i++)
        if (list[i] == id) return i;
    return -1;
}

static int elements(const lsi_region *r, int32_t id)
{
    return (int)(ls_shape_count(r->g->values[id]->shape) / r->samples);
}

static lsi_region_value *add_value(lsi_region *r, int32_t id, ls_region_kind kind)
{
    lsi_region_value *v = find(r, id);

    if (v != NULL) return v;
    if (r->n_values == LSI_REGION_VALUES) return NULL;
    v = &r->value[r->n_values++];
    *v = (lsi_region_value){id, kind, -1, -1, -1, -1, -1};
    return v;
}

static bool add_place(lsi_region *r, lsi_region_value *v, int first)
{
    if (r->n_places == LSI_REGION_PLACES) return false;
    v->place = r->n_places++;
    r->place[v->place] = (lsi_region_place){.c = 1,
                                            .h = 1,
                                            .w = elements(r, v->id),
                                            .bytes = r->g->values[v->id]->dtype == LS_U8,
                                            .first = first,
                                            .last = first};
    return true;
}

bool lsi_region_is_outer(const ls_node *n)
{
    const ls_matmul_attr *a = n->attr;

    return n->op == &ls_op_matmul && a->trans_a && !a->trans_b;
}

/* Whether input k of the node is read slice by slice, and from shared memory. */
static bool reads_slice(const lsi_region *r, const ls_node *n, int k)
{
    const ls_op *op = n->op;

    if (ls_optim_is(op)) return false;
    if (op == &ls_op_conv2d || op == &ls_op_conv2d_dx || op == &ls_op_dropout || op == &ls_op_cross_entropy ||
        op == &ls_op_accuracy || op == &ls_op_bias)
        return k == 0;
    if (op == &ls_op_matmul) return k == 0 && !lsi_region_is_outer(n);
    if (op == &ls_op_cross_entropy_grad) return k == 1;
    if (op->pw == LS_PW_NONE && op != &ls_op_pointwise) return true;
    return ls_shape_equal(r->g->values[n->in[k]]->shape, r->g->values[n->out[0]]->shape);
}

static ls_region_kind kind_of(const lsi_region *r, const ls_node *n, int k)
{
    const ls_op *op = n->op;

    if (ls_optim_is(op)) return LS_REGION_NEXT;
    if (op == &ls_op_conv2d_dw || op == &ls_op_accuracy || op == &ls_op_reduce_sum || lsi_region_is_outer(n))
        return LS_REGION_SUM;
    if (op == &ls_op_cross_entropy) return k == 0 ? LS_REGION_SUM : LS_REGION_SAMPLE;
    if (op == &ls_op_bias_act_grad) return k == 1 ? LS_REGION_SUM : LS_REGION_SAMPLE;
    if (op->pw != LS_PW_NONE) {
        const lsi_region_value *x = find(r, n->in[0]);
        if (x != NULL && x->kind == LS_REGION_SUM) return LS_REGION_SUM;
    }
    return LS_REGION_SAMPLE;
}

static bool read_inputs(lsi_region *r, int i)
{
    const ls_node *n = r->member[i];

    for (int k = 0; k < n->n_in; k++) {
        lsi_region_value *v = add_value(r, n->in[k], LS_REGION_OUTSIDE);
        if (v == NULL) return false;
        if (v->kind == LS_REGION_SUM || !reads_slice(r, n, k)) continue;
        if (v->place < 0 && !add_place(r, v, -1)) return false;
        r->place[v->place].last = i;
    }
    return true;
}

static bool make_outputs(lsi_region *r, int i)
{
    const ls_node *n = r->member[i];

    for (int k = 0; k < n->n_out; k++) {
        lsi_region_value *v = add_value(r, n->out[k], kind_of(r, n, k));
        if (v == NULL) return false;
        if (v->kind == LS_REGION_NEXT) continue;
        if (v->kind == LS_REGION_SUM) {
            const bool follows = n->op->pw != LS_PW_NONE || lsi_region_is_outer(n);
            if (follows) continue;
            v->sum = r->sums;
            r->sums += (int)ls_shape_count(r->g->values[v->id]->shape);
        } else if ((n->op->flags & LS_OP_VIEW) || lsi_region_is_joined(r, n)) {
            v->place = find(r, n->in[0])->place;
        } else if (!add_place(r, v, i)) {
            return false;
        }
    }
    return true;
}

/* What the second kernel reads of samples, and what the region gives away. */
static void mark_given(lsi_region *r, int n_in, const int32_t *in, int n_out, const int32_t *out)
{
    for (int i = 0; i < r->n_values; i++) {
        r->value[i].input = in != NULL ? place_in(in, n_in, r->value[i].id) : -1;
        r->value[i].output = out != NULL ? place_in(out, n_out, r->value[i].id) : -1;
    }
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < 2 && lsi_region_is_outer(r->member[i]); k++) {
            lsi_region_value *v = find(r, r->member[i]->in[k]);
            if (v->kind != LS_REGION_SAMPLE || v->output >= 0 || v->spill >= 0) continue;
            v->spill = r->spilled;
            r->spilled += elements(r, v->id);
        }
}

/* -- what nodes want of places ----------------------------------------------------------------------------
 */

static void widen(int *pad, int64_t to)
{
    if (to > *pad) *pad = (int)to;
}

/* The value is images to a node; false where another node sees other images in the same memory. */
static bool as_images(lsi_region *r, int32_t id)
{
    const ls_shape s = r->g->values[id]->shape;
    lsi_region_place *p = &r->place[find(r, id)->place];
    const int c = (int)s.dim[1], h = s.rank > 2 ? (int)s.dim[2] : 1, w = s.rank > 3 ? (int)s.dim[3] : 1;

    if (p->image) return p->c == c && p->h == h && p->w == w;
    p->image = true;
    p->c = c;
    p->h = h;
    p->w = w;
    return true;
}

/* Windows that reach over the edges of x. */
static void want_around(lsi_region *r, int32_t x, const ls_conv_attr *a, const int *kernel, ls_shape y)
{
    lsi_region_place *p = &r->place[find(r, x)->place];

    widen(&p->top, a->pad[0]);
    widen(&p->left, a->pad[1]);
    widen(&p->bottom,
          (y.dim[2] - 1) * a->stride[0] + (int64_t)(kernel[0] - 1) * a->dilation[0] - a->pad[0] - (p->h - 1));
    widen(&p->right,
          (y.dim[3] - 1) * a->stride[1] + (int64_t)(kernel[1] - 1) * a->dilation[1] - a->pad[1] - (p->w - 1));
}

/* Lanes of a product read or write several channels of it at once. */
static bool keep_apart(lsi_region *r, int32_t id)
{
    r->place[find(r, id)->place].apart = true;
    return true;
}

static void keep_far(lsi_region *r, const ls_node *n)
{
    if (lsi_region_product_of(r->g, n).by_channels) r->place[find(r, n->in[0])->place].far = true;
}

static bool want_conv(lsi_region *r, const ls_node *n)
{
    const ls_conv_attr *a = n->attr;
    const ls_shape w = r->g->values[n->op == &ls_op_conv2d_dw ? n->out[0] : n->in[1]]->shape;
    const int kernel[2] = {(int)w.dim[2], (int)w.dim[3]};
    const ls_shape first = r->g->values[n->in[0]]->shape, second = r->g->values[n->in[1]]->shape,
                   result = r->g->values[n->out[0]]->shape;
    lsi_region_place *dy;

    if (!as_images(r, n->in[0])) return false;
    keep_far(r, n);
    if (n->op == &ls_op_conv2d) {
        want_around(r, n->in[0], a, kernel, result);
        return as_images(r, n->out[0]) && keep_apart(r, n->out[0]);
    }
    if (n->op == &ls_op_conv2d_dw) {
        want_around(r, n->in[0], a, kernel, second);
        return as_images(r, n->in[1]) && keep_apart(r, n->in[1]);
    }
    dy = &r->place[find(r, n->in[0])->place];
    widen(&dy->top, (int64_t)(kernel[0] - 1) * a->dilation[0] - a->pad[0]);
    widen(&dy->left, (int64_t)(kernel[1] - 1) * a->dilation[1] - a->pad[1]);
    widen(&dy->bottom, result.dim[2] - 1 + a->pad[0] - (first.dim[2] - 1));
    widen(&dy->right, result.dim[3] - 1 + a->pad[1] - (first.dim[3] - 1));
    return as_images(r, n->out[0]) && keep_apart(r, n->out[0]);
}

static bool want(lsi_region *r, const ls_node *n)
{
    const ls_op *op = n->op;

    if (op == &ls_op_conv2d || op == &ls_op_conv2d_dx || op == &ls_op_conv2d_dw) return want_conv(r, n);
    if (op == &ls_op_maxpool2d || op == &ls_op_avgpool2d || op == &ls_op_maxpool2d_grad ||
        op == &ls_op_avgpool2d_grad)
        return as_images(r, n->in[0]) && as_images(r, n->out[0]);
    if (r->g->values[n->in[0]]->shape.rank != 4) return true;
    if (op == &ls_op_reduce_sum) return as_images(r, n->in[0]);
    return op != &ls_op_bias_act_grad ||
           (as_images(r, n->in[0]) && as_images(r, n->in[1]) && as_images(r, n->out[0]));
}

/* -- weights and masks ------------------------------------------------------------------------------------
 */

const lsi_region_weights *lsi_region_weights_of(const lsi_region *r, int32_t id)
{
    for (int i = 0; i < r->n_weights; i++)
        if (r->weights[i].id == id) return &r->weights[i];
    return NULL;
}

static int apart(int floats)
{
    return (floats + 3) / 8 * 8 + 4; /* the next that leaves 4 when divided by 8 */
}

static bool keep_weights(lsi_region *r, int32_t id, int rows, int width, int pitch)
{
    if (lsi_region_weights_of(r, id) != NULL) return true;
    if (r->n_weights == LSI_REGION_WEIGHTS) return false;
    r->weights[r->n_weights++] = (lsi_region_weights){
        id, rows, width, pitch, r->common, r->machine.rounded && lsi_region_only_products(r, id)};
    r->common += (rows * pitch + 3) / 4 * 4;
    return true;
}

static bool keep_bias(lsi_region *r, const ls_node *n, int k)
{
    const int count = k < n->n_in ? (int)ls_shape_count(r->g->values[n->in[k]]->shape) : 0;

    return count == 0 || count > SOME_WEIGHTS || keep_weights(r, n->in[k], 1, count, count);
}

/* Of convolutions always, in rows of one channel of the result each; small ones of all others. */
static bool keep_small_weights(lsi_region *r)
{
    for (int i = 0; i < r->n; i++) {
        const ls_node *n = r->member[i];
        if (n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx) {
            const ls_shape w = r->g->values[n->in[1]]->shape;
            const int width = (int)(w.dim[1] * w.dim[2] * w.dim[3]);
            if (!keep_weights(r, n->in[1], (int)w.dim[0], width, apart(width)) || !keep_bias(r, n, 2))
                return false;
        }
        if (n->op == &ls_op_matmul && !lsi_region_is_outer(n) && !keep_bias(r, n, 2)) return false;
        if (n->op == &ls_op_bias && !keep_bias(r, n, 1)) return false;
    }
    return true;
}

const lsi_region_mask *lsi_region_mask_of(const lsi_region *r, const ls_node *n)
{
    const ls_random_attr *a = n->attr;

    for (int i = 0; i < r->n_masks; i++) {
        const lsi_region_mask *m = &r->mask[i];
        const ls_shape s = r->g->values[n->in[0]]->shape;
        const int draws = a->per_channel ? (int)s.dim[1] : elements(r, n->in[0]);
        if (m->key == n->in[1] && m->attr.stream == a->stream && m->attr.p == a->p && m->draws == draws)
            return m;
    }
    return NULL;
}

static bool draw_masks(lsi_region *r)
{
    for (int i = 0; i < r->n; i++) {
        const ls_node *n = r->member[i];
        lsi_region_mask *m;
        if (n->op != &ls_op_dropout) continue;
        m = (lsi_region_mask *)lsi_region_mask_of(r, n);
        if (m == NULL) {
            const ls_random_attr *a = n->attr;
            if (r->n_masks == LSI_REGION_MASKS) return false;
            m = &r->mask[r->n_masks++];
            *m = (lsi_region_mask){
                *a, n->in[1],
                a->per_channel ? (int)r->g->values[n->in[0]]->shape.dim[1] : elements(r, n->in[0]), 0, i};
        }
        m->last = i;
    }
    return true;
}

/* -- products ---------------------------------------------------------------------------------------------
 */

/* Cuts all products for so many threads; clocks by a count, -1: it cannot be done. */
static long cut_products(lsi_region *r, int threads)
{
    const bool many = r->samples > r->machine.processors;
    const lsi_region_crew crew = {threads / 32, many ? ROOM_OF_MANY : ROOM, many ? 3 : 1};
    long sum = 0;
    int room = 0;

    for (int i = 0; i < r->n; i++) {
        const bool dw = r->member[i]->op == &ls_op_conv2d_dw;
        lsi_region_product *p = &r->product[i];
        long clocks;
        *p = lsi_region_product_of(r->g, r->member[i]);
        if (r->member[i]->op == &ls_op_matmul && room < threads) room = threads;
        if (p->rows == 0) continue;
        clocks = lsi_region_cut(p, &crew, dw, !(dw && many));
        if (clocks == 0) return -1;
        sum += clocks;
        if (lsi_region_parts(p) > room) room = lsi_region_parts(p);
    }
    r->threads = threads;
    r->room = 0;
    r->each = (room + 3) / 4 * 4;
    return sum;
}

/* -- memory -----------------------------------------------------------------------------------------------
 */

typedef struct item {
    int first, last, size, *at;
} item;

static bool has_border(const lsi_region_place *p)
{
    return p->top + p->left + p->bottom + p->right > 0;
}

bool lsi_region_cleared(const lsi_region_place *p)
{
    return has_border(p) && p->first >= 0;
}

static int size_of(lsi_region_place *p)
{
    const int cells = p->c * p->h * p->w;
    const bool flat = !has_border(p) && !p->apart && !p->far;

    p->row = flat ? p->w : p->left + p->w + p->right;
    p->plane = flat ? p->h * p->w : (p->top + p->h + p->bottom) * p->row;
    if (p->far)
        p->plane = (p->plane + 23) / 32 * 32 + 8;
    else if (p->apart)
        p->plane = apart(p->plane);
    return ((p->bytes ? (cells + 3) / 4 : p->c * p->plane) + 3) / 4 * 4;
}

/* The lowest place that no other needs at the same time. */
static void place(lsi_region *r, item *items, int n, int k)
{
    int at = r->each;

    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n; i++) {
            const bool beside = items[i].first > items[k].last || items[i].last < items[k].first;
            if (i == k || *items[i].at < 0 || beside) continue;
            if (*items[i].at >= at + items[k].size || *items[i].at + items[i].size <= at) continue;
            at = *items[i].at + items[i].size;
            moved = true;
        }
    }
    *items[k].at = at;
}

/* The largest first: small ones fit between. */
static void place_all(lsi_region *r)
{
    item items[LSI_REGION_PLACES + LSI_REGION_MASKS];
    int n = 0, end = r->each;

    for (int i = 0; i < r->n_places; i++) {
        lsi_region_place *p = &r->place[i];
        const int early = lsi_region_cleared(p) ? LSI_REGION_EARLY : 0;
        items[n++] = (item){p->first - early, p->last, size_of(p), &p->at};
    }
    for (int i = 0; i < r->n_masks; i++)
        items[n++] = (item){-1, r->mask[i].last, (r->mask[i].draws + 3) / 4 * 4, &r->mask[i].at};
    for (int i = 0; i < n; i++) *items[i].at = -1;
    for (int done = 0; done < n; done++) {
        int k = -1;
        for (int i = 0; i < n; i++)
            if (*items[i].at < 0 && (k < 0 || items[i].size > items[k].size)) k = i;
        place(r, items, n, k);
        if (*items[k].at + items[k].size > end) end = *items[k].at + items[k].size;
    }
    r->each = end;
}

static int blocks_with(const lsi_region *r, int common)
{
    const size_t bytes = sizeof(float) * ((size_t)common + (size_t)r->each);
    const int by_memory = bytes > r->machine.shared ? 0 : (int)((r->machine.shared + 1024) / (bytes + 1024));
    const int most = r->threads >= 256 ? 768 : 1024; /* a thread of a large block needs 80 registers */
    const int by_threads = r->samples <= r->machine.processors || r->threads > most ? 1 : most / r->threads;

    return by_memory < by_threads ? by_memory : by_threads;
}

/* Weights of products with a vector: where they do not fit, they are read from global memory. */
static bool keep_large_weights(lsi_region *r)
{
    const int most = blocks_with(r, r->common);

    for (int i = 0; i < r->n; i++) {
        const ls_node *n = r->member[i];
        const ls_shape w = n->op == &ls_op_matmul ? r->g->values[n->in[1]]->shape : LS_SHAPE_SCALAR;
        const int count = (int)ls_shape_count(w);
        if (n->op != &ls_op_matmul || lsi_region_is_outer(n)) continue;
        if (lsi_region_weights_of(r, n->in[1]) != NULL) continue;
        if (blocks_with(r, r->common + count + 4) < (count <= SOME_WEIGHTS ? 1 : most)) continue;
        if (!keep_weights(r, n->in[1], (int)w.dim[0], (int)w.dim[1], (int)w.dim[1])) return false;
    }
    r->blocks = blocks_with(r, r->common);
    return r->blocks >= 1;
}

/* Few samples: all of a processor for each.  Many: several blocks hide one another's waiting. */
static bool choose_threads(lsi_region *r)
{
    static const int few[] = {512, 640};
    int most = 0, best = 512;
    long least = -1;

    for (int i = 0; i < r->n_places; i++) {
        const int cells = r->place[i].c * r->place[i].h * r->place[i].w;
        if (cells > most) most = cells;
    }
    if (r->machine.threads > 0) return cut_products(r, r->machine.threads) >= 0;
    if (most <= 512) return cut_products(r, 128) >= 0;
    if (r->samples > r->machine.processors) return cut_products(r, 128) >= 0;
    for (int i = 0; i < 2; i++) {
        const long clocks = cut_products(r, few[i]);
        if (clocks < 0 || (least >= 0 && clocks >= least)) continue;
        least = clocks;
        best = few[i];
    }
    return least >= 0 && cut_products(r, best) >= 0;
}

/* What is not known while members are collected, who else reads a value, cannot make operands too many. */
_Static_assert((int)LSI_REGION_POINTERS >= (int)LSI_REGION_VALUES, "an operand is a value of the region");

bool lsi_region_plan(lsi_region *r, const lsi_region_machine *m, const ls_graph *g, int64_t samples, int n,
                     const ls_node *const *members, int n_in, const int32_t *in, int n_out,
                     const int32_t *out)
{
    memset(r, 0, sizeof *r);
    if (n > LSI_REGION_MEMBERS || n_in + n_out > LSI_REGION_POINTERS) return false;
    r->g = g;
    r->machine = *m;
    r->samples = samples;
    r->n = n;
    r->n_in = n_in;
    r->n_out = n_out;
    for (int i = 0; i < n; i++) r->member[i] = members[i];
    lsi_region_join(r, n_out, out);
    for (int i = 0; i < n; i++) {
        if (!read_inputs(r, i) || !make_outputs(r, i)) return false;
    }
    if (!lsi_region_updates_one_each(r)) return false;
    mark_given(r, n_in, in, n_out, out);
    for (int i = 0; i < n; i++)
        if (!want(r, members[i])) return false;
    lsi_region_keep_rounded(r);
    if (!keep_small_weights(r) || !draw_masks(r) || !choose_threads(r)) return false;
    place_all(r);
    return keep_large_weights(r);
}

int lsi_region_grid(const lsi_region *r)
{
    const int64_t most = (int64_t)r->machine.processors * r->blocks;

    return (int)(r->samples < most ? r->samples : most);
}

size_t lsi_region_scratch(const lsi_region *r)
{
    const size_t parts = (size_t)lsi_region_grid(r) * (size_t)r->sums;

    return sizeof(float) * ((parts + 3) / 4 * 4 + (size_t)r->samples * (size_t)r->spilled);
}
