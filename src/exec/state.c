/* state.c: memory and initial values of variables.
 *
 * Initial values are drawn with the counter-based generator from seed, variable name and element number, so
 * that they depend neither on the order of layers nor on ranks or threads. */
#include "exec/state.h"

#include <math.h>
#include <string.h>

#include "base/grow.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "exec/peers.h"
#include "exec/pieces.h"
#include "exec/tensor.h"
#include "exec/workspace.h"

typedef struct entry {
    ls_tensor t;
    ls_buffer memory;
    ls_init init;
    ls_var_role role;
    ls_category category;
    const ls_state *owner;
    ls_shared *shared; /* where the values lie; NULL: in memory of this rank's own */
    int own, pieces;   /* this is piece `own` of so many, of one of shape `whole`; 0 pieces: it is all */
    ls_shape whole;
    ls_group group; /* that has them */
    bool in_parts;  /* each rank of the machine has a part of it, were the others there */
} entry;

struct ls_state {
    ls_device *dev;
    ls_state *base; /* whose parameters these are; NULL: its own */
    entry **entries;
    int n;
    size_t cap;
    bool pending;
    struct ls_peers *peers;
    lsi_workspace workspace;
};

ls_status ls_state_create(ls_state **out, ls_device *dev, ls_err *err)
{
    ls_state *s = ls_alloc(LS_MEM_PLAN, sizeof *s);

    *out = s;
    if (s == NULL) return ls_fail(err, LS_NOMEM, "state: no memory");
    s->dev = dev;
    return LS_OK;
}

ls_status ls_state_create_beside(ls_state **out, ls_state *base, ls_err *err)
{
    ls_status st = ls_state_create(out, base->dev, err);

    if (st == LS_OK) (*out)->base = base;
    return st;
}

static void entry_destroy(entry *e)
{
    if (e == NULL) return;
    ls_free((char *)e->t.name);
    ls_buffer_free(&e->memory);
    ls_shared_destroy(e->shared);
    ls_free(e);
}

void ls_state_destroy(ls_state *s)
{
    if (s == NULL) return;
    for (int i = 0; i < s->n; i++)
        if (s->entries[i]->owner == s) entry_destroy(s->entries[i]);
    ls_free(s->entries);
    lsi_workspace_release(&s->workspace);
    ls_free(s);
}

int ls_state_count(const ls_state *s)
{
    return s->n;
}

const ls_tensor *ls_state_at(const ls_state *s, int i)
{
    return i >= 0 && i < s->n ? &s->entries[i]->t : NULL;
}

ls_tensor *lsi_state_entry(ls_state *s, int i)
{
    return &s->entries[i]->t;
}

lsi_workspace *lsi_state_workspace(ls_state *s)
{
    return &s->workspace;
}

ls_var_role ls_state_role(const ls_state *s, int i)
{
    return s->entries[i]->role;
}

void ls_state_set_pending(ls_state *s, bool pending)
{
    s->pending = pending;
}

bool ls_state_pending(const ls_state *s)
{
    return s->pending;
}

void ls_state_set_peers(ls_state *s, struct ls_peers *peers)
{
    s->peers = peers;
}

struct ls_peers *ls_state_peers(const ls_state *s)
{
    return s->peers;
}

bool ls_state_shared(const ls_state *s, int i)
{
    return s->entries[i]->shared != NULL;
}

bool ls_state_in_pieces(const ls_state *s, int i)
{
    return s->entries[i]->pieces > 0;
}

ls_cut_of ls_state_cut(const ls_state *s, int i)
{
    const entry *e = s->entries[i];

    return (ls_cut_of){e->own, e->group};
}

ls_tensor ls_state_whole(const ls_state *s, int i)
{
    const entry *e = s->entries[i];
    ls_tensor t = e->t;

    if (e->pieces == 0) return t;
    t.shape = e->whole;
    t.bytes = (size_t)ls_shape_count(e->whole) * ls_dtype_size(t.dtype);
    t.buffer = NULL;
    return t;
}

void ls_state_piece(const ls_state *s, int i, size_t *first, size_t *bytes)
{
    const size_t whole = ls_state_whole(s, i).bytes, of_a_piece = ls_state_at(s, i)->bytes;

    *first = (size_t)ls_state_cut(s, i).own * of_a_piece;
    *bytes = *first >= whole ? 0 : whole - *first < of_a_piece ? whole - *first : of_a_piece;
}

size_t ls_state_shared_bytes(const ls_state *s)
{
    size_t sum = 0;

    for (int i = 0; i < s->n; i++)
        if (ls_state_shared(s, i)) sum += lsi_peers_part_of(s->peers, s->entries[i]->t.bytes);
    return sum;
}

void lsi_state_bytes(const ls_state *s, size_t by_category[LS_CAT_N])
{
    for (int i = 0; i < s->n; i++) {
        const entry *e = s->entries[i];
        if (e->owner == s)
            by_category[e->category] += e->in_parts ? lsi_peers_part_of(s->peers, e->t.bytes) : e->t.bytes;
    }
}

static int find(const ls_state *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->entries[i]->t.name, name) == 0) return i;
    return -1;
}

const ls_tensor *ls_state_find(const ls_state *s, const char *name)
{
    int i = find(s, name);

    return i < 0 ? NULL : &s->entries[i]->t;
}

static ls_status find_room(const ls_state *s, const ls_var *var, entry *e, ls_err *err)
{
    const bool common = var->home == LS_HOME_MACHINE && s->dev != NULL && s->dev->shares;
    ls_comm *c = common ? lsi_peers_sharing(s->peers) : NULL;
    int rank, ranks;

    e->in_parts = common && lsi_peers_pieces(s->peers, &rank, &ranks);
    if (c != NULL) {
        const ls_status st = ls_shared_create(&e->shared, c, e->t.bytes, err);
        if (st != LS_OK) return st;
        e->memory = ls_buffer_of_host(ls_shared_data(e->shared), e->t.bytes);
        e->memory.shared = true;
        return LS_OK;
    }
    return ls_buffer_alloc(&e->memory, s->dev, e->t.bytes, err);
}

static ls_status add_entry(ls_state *s, const ls_var *var, const ls_vinfo *v, ls_err *err)
{
    const size_t bytes = ls_layout_bytes(v->layout, v->dtype, v->shape);
    entry *e;
    ls_status st;

    if (!LS_GROW(LS_MEM_PLAN, s->entries, s->n + 1, s->cap))
        return ls_fail(err, LS_NOMEM, "state: no memory");
    if (s->base != NULL && !lsi_state_copies(var->role)) {
        const int shared = find(s->base, var->name);
        LS_BUG_IF(shared < 0);
        s->entries[s->n++] = s->base->entries[shared];
        return LS_OK;
    }
    e = ls_alloc(LS_MEM_PLAN, sizeof *e);
    if (e == NULL) return ls_fail(err, LS_NOMEM, "state: no memory for variable \"%s\"", var->name);
    *e = (entry){.init = var->init, .role = var->role, .category = v->category, .owner = s};
    if (var->home == LS_HOME_SHARDED) {
        e->own = lsi_peers_rank_in(s->peers, var->group);
        e->pieces = var->pieces;
        e->group = var->group;
        e->whole = var->whole;
    }
    e->t = (ls_tensor){ls_strdup(LS_MEM_PLAN, var->name), v->dtype, v->shape, bytes, &e->memory, 0};
    st = e->t.name != NULL ? find_room(s, var, e, err) : ls_fail(err, LS_NOMEM, "no memory for its name");
    if (st != LS_OK) {
        entry_destroy(e);
        return ls_fail_in(err, st, "variable \"%s\" (%zu bytes)", var->name, bytes);
    }
    s->entries[s->n++] = e;
    return LS_OK;
}

ls_status lsi_state_bind(ls_state *s, const ls_graph *g, int *index, ls_err *err)
{
    char have[LS_SHAPE_TEXT], want[LS_SHAPE_TEXT];

    for (int32_t i = 0; i < g->n_vars; i++) {
        const ls_vinfo *v = g->values[g->vars[i]->first];
        const ls_tensor *t;
        index[i] = find(s, g->vars[i]->name);
        if (index[i] < 0) {
            ls_status st = add_entry(s, g->vars[i], v, err);
            if (st != LS_OK) return st;
            index[i] = s->n - 1;
        }
        t = &s->entries[index[i]]->t;
        if (t->dtype != v->dtype || !ls_shape_equal(t->shape, v->shape))
            return ls_fail(err, LS_INVALID, "variable \"%s\" is %s %s in the state but %s %s in the graph",
                           t->name, ls_dtype_name(t->dtype), ls_shape_text(t->shape, have),
                           ls_dtype_name(v->dtype), ls_shape_text(v->shape, want));
    }
    return LS_OK;
}

/* -- initial values
 * --------------------------------------------------------------------------------------------- */

/* A truncated normal beyond its bounds is drawn again; the number of the try takes the place of the sample
 * index, so that redraws are independent. */
static double redraw(const ls_rng_key *key, uint32_t stream, uint64_t i)
{
    for (uint32_t attempt = 1;; attempt++) {
        const double z = ls_rng_normal(ls_rng_word(key, stream, attempt, i / 2 * 2),
                                       ls_rng_word(key, stream, attempt, i / 2 * 2 + 1), (int)(i % 2));
        if (fabs(z) <= 2.0) return z;
    }
}

/* Elements 4 * block to 4 * block + 3, which come from one block of random words. */
static void draw(const ls_init *init, const ls_rng_key *key, uint32_t stream, uint64_t block, double x[4])
{
    uint32_t words[4] = {0};

    if (init->kind != LS_INIT_CONST) ls_rng_block(key, stream, 0, (uint32_t)block, words);
    for (int i = 0; i < 4; i++) {
        const uint32_t *pair = words + i / 2 * 2;
        switch (init->kind) {
        case LS_INIT_CONST: x[i] = init->a; break;
        case LS_INIT_UNIFORM: x[i] = init->a * (2.0 * (double)ls_rng_uniform(words[i]) - 1.0); break;
        default:
            x[i] = ls_rng_normal(pair[0], pair[1], i % 2);
            if (init->kind == LS_INIT_TRUNC_NORMAL && fabs(x[i]) > 2.0)
                x[i] = redraw(key, stream, 4 * block + (uint64_t)i);
            x[i] *= init->a;
        }
    }
}

static void store(void *to, ls_dtype t, int64_t i, double x)
{
    switch (t) {
    case LS_F32: ((float *)to)[i] = (float)x; break;
    case LS_BF16: ((uint16_t *)to)[i] = ls_bf16_from_f32((float)x); break;
    case LS_F16: ((uint16_t *)to)[i] = ls_f16_from_f32((float)x); break;
    case LS_F64: ((double *)to)[i] = x; break;
    case LS_I32: ((int32_t *)to)[i] = (int32_t)x; break;
    default: ((uint8_t *)to)[i] = (uint8_t)x; break;
    }
}

/* Elements [first, first + count) of a variable, into `to`; those from `end` on are zero. */
typedef struct filling {
    const entry *e;
    ls_rng_key key;
    uint32_t stream;
    int threads;
    void *to;
    int64_t before; /* elements of the pieces before this one */
    int64_t first, count, end;
} filling;

static void fill_part(int thread, int n_threads, void *arg)
{
    const filling *f = arg;
    int64_t lo, hi;

    ls_parallel_range_grain(f->count, 4, thread, n_threads, &lo, &hi);
    for (int64_t i = lo; i < hi;) {
        const int64_t element = f->first + i, block = element / 4;
        double x[4];
        draw(&f->e->init, &f->key, f->stream, (uint64_t)block, x);
        for (int64_t k = element; k < 4 * block + 4 && i < hi; k++, i++)
            store(f->to, f->e->t.dtype, i, k < f->end ? x[k - 4 * block] : 0);
    }
}

static ls_status fill_chunk(void *ctx, void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    filling *f = ctx;
    const size_t size = ls_dtype_size(f->e->t.dtype);

    (void)err;
    f->to = chunk;
    f->first = f->before + (int64_t)(offset / size);
    f->count = (int64_t)(bytes / size);
    ls_parallel_run(f->threads, fill_part, f);
    return LS_OK;
}

ls_status ls_state_init(ls_state *s, uint64_t seed, ls_err *err)
{
    ls_status st = LS_OK;

    for (int k = 0; k < s->n; k++) {
        if (ls_state_shared(s, k) && !lsi_peers_first_here(s->peers)) continue;
        filling f = {.e = s->entries[k],
                     .key = {(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0},
                     .threads = s->dev != NULL ? s->dev->threads : 1};
        f.stream = ls_rng_stream(f.e->t.name);
        f.before = f.e->own * ls_shape_count(f.e->t.shape);
        f.end = ls_shape_count(ls_state_whole(s, k).shape);
        LS_TRY(ls_tensor_fill(&f.e->t, fill_chunk, &f, err));
    }
out:
    return st;
}
