/* random.c: dropout and random tensors from vectors of Philox words: the same draws as the reference kernels,
 * whatever the layout, because elements are counted in the order of the logical tensor. */
#include "backend/cpu/random.h"

#include <math.h>

#include "backend/cpu/channels.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/move.h"
#include "backend/cpu/planners.h"

#define TILE 1024 /* words made at a time, in plain layout */
#define RUN  256  /* pixels done at a time, in C16 */

typedef struct random_state {
    const lsi_random_table *table;
    ls_random_attr attr;
    int64_t samples, per_sample; /* draws of a sample: one for each element or channel */
    int64_t channels, pixels;    /* of a sample; where needed */
    uint32_t limit;              /* a draw is dropped when its upper 24 bits are less */
    float scale;
    int threads;
    ls_parallel_fn drop; /* dropout on one of the threads, or NULL: `job` */
    lsi_channel_job job; /* per channel, in C16 */
    const lsi_channel_table *channel_table;
    ls_dtype type; /* of what is dropped from: f32, or 16 bits, which are converted piece by piece */
    const lsi_move_table *move;
} random_state;

typedef struct random_call {
    const random_state *s;
    ls_rng_key key;
    const float *x;
    float *y;
    float *factor; /* per channel: (samples, channels) */
} random_call;

ls_rng_key lsi_key_of(const void *input)
{
    uint32_t w[4];

    memcpy(w, input, sizeof w);
    return (ls_rng_key){w[0], w[1], w[2], w[3]};
}

/* What to do with n draws, the first of them number `at` of the tensor, given their words. */
typedef void (*use_words)(const random_call *c, const uint32_t *words, int64_t at, int64_t n);

/* Cuts the tensor among threads and hands out tiles with their words. */
static void for_tiles(const random_call *c, int thread, int n_threads, use_words use)
{
    uint32_t words[TILE + LSI_WORDS_SLACK];
    const random_state *s = c->s;
    int64_t at, end;

    /* Pieces begin at whole blocks of four words where samples do; `skip` covers the others. */
    ls_parallel_range_grain(s->samples * s->per_sample, 64, thread, n_threads, &at, &end);
    while (at < end) {
        int64_t sample = at / s->per_sample, e = at % s->per_sample, skip = e % 4;
        int64_t n = s->per_sample - e < end - at ? s->per_sample - e : end - at;
        if (n > TILE - skip) n = TILE - skip;
        s->table->words(&c->key, s->attr.stream, (uint32_t)sample, (uint32_t)(e / 4), n + skip, words);
        use(c, words + skip, at, n);
        at += n;
    }
}

/* -- dropout ----------------------------------------------------------------------------------------------
 */

static void widen(const random_call *c, int64_t at, int64_t n, float *to)
{
    const lsi_move_table *m = c->s->move;

    (c->s->type == LS_BF16 ? m->bf16_to_f32 : m->f16_to_f32)(to, (const uint16_t *)(const void *)c->x + at,
                                                             n);
}

static void narrow(const random_call *c, const float *from, int64_t at, int64_t n)
{
    const lsi_move_table *m = c->s->move;

    (c->s->type == LS_BF16 ? m->bf16_from_f32 : m->f16_from_f32)((uint16_t *)(void *)c->y + at, from, n);
}

static void use_drop(const random_call *c, const uint32_t *words, int64_t at, int64_t n)
{
    float piece[TILE];

    if (c->s->type == LS_F32) {
        c->s->table->drop(words, c->s->limit, c->s->scale, c->x + at, c->y + at, n);
        return;
    }
    widen(c, at, n, piece);
    c->s->table->drop(words, c->s->limit, c->s->scale, piece, piece, n);
    narrow(c, piece, at, n);
}

/* The same on pixels of 16 channels. */
static void drop_lines(const random_call *c, const uint32_t *words, int64_t stride, int64_t at, int64_t n)
{
    float piece[16 * RUN];

    if (c->s->type == LS_F32) {
        c->s->table->drop16(words, stride, c->s->limit, c->s->scale, c->x + at, c->y + at, n);
        return;
    }
    widen(c, at, 16 * n, piece);
    c->s->table->drop16(words, stride, c->s->limit, c->s->scale, piece, piece, n);
    narrow(c, piece, at, 16 * n);
}

static void drop_thread(int thread, int n_threads, void *arg)
{
    for_tiles(arg, thread, n_threads, use_drop);
}

static void use_drop_planes(const random_call *c, const uint32_t *words, int64_t at, int64_t n)
{
    const random_state *s = c->s;
    const int64_t S = s->pixels;

    s->table->drop_planes(words, s->limit, s->scale, c->x + at * S, c->y + at * S, n, S);
}

static void drop_planes_thread(int thread, int n_threads, void *arg)
{
    for_tiles(arg, thread, n_threads, use_drop_planes);
}

static void use_factor(const random_call *c, const uint32_t *words, int64_t at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) c->factor[at + i] = words[i] >> 8 < c->s->limit ? 0 : c->s->scale;
}

/* Pixels lo..lo+n-1 of 16 channels of a sample. */
static void drop_block(const random_call *c, int64_t sample, int64_t block, int64_t lo, int64_t n)
{
    uint32_t words[16 * (RUN + LSI_WORDS_SLACK) + LSI_WORDS_SLACK];
    const random_state *s = c->s;
    int64_t S = s->pixels, stride = RUN + LSI_WORDS_SLACK, skip = 0;
    int64_t at = (sample * s->channels + block * 16) * S + lo * 16;
    bool whole = S <= RUN; /* then the words of all 16 channels are consecutive */

    if (whole) {
        stride = S;
        s->table->words(&c->key, s->attr.stream, (uint32_t)sample, (uint32_t)(block * 16 * S / 4), 16 * S,
                        words);
        drop_lines(c, words + lo, stride, at, n);
        return;
    }
    for (int ch = 0; ch < 16; ch++) {
        uint32_t *row = words + ch * stride;
        int64_t e = (block * 16 + ch) * S + lo;
        skip = e % 4;
        s->table->words(&c->key, s->attr.stream, (uint32_t)sample, (uint32_t)(e / 4), n + skip, row);
        if (skip > 0) memmove(row, row + skip, (size_t)n * sizeof *row);
    }
    drop_lines(c, words, stride, at, n);
}

static void drop_c16_thread(int thread, int n_threads, void *arg)
{
    const random_call *c = arg;
    const random_state *s = c->s;
    int64_t blocks = s->channels / 16, runs = (s->pixels + RUN - 1) / RUN, i, end;

    ls_parallel_range(s->samples * blocks * runs, thread, n_threads, &i, &end);
    for (; i < end; i++) {
        int64_t lo = i % runs * RUN, n = s->pixels - lo < RUN ? s->pixels - lo : RUN;
        drop_block(c, i / (runs * blocks), i / runs % blocks, lo, n);
    }
}

static void channel_apply(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi)
{
    const random_call *c = ctx;
    const lsi_channels *v = &c->s->job.view;
    lsi_norm_apply d = {.x = c->x, .y = c->y, .scale = c->factor + lo / v->s * v->c};

    (void)group;
    c->s->channel_table->norm(v, &d, ch, lo, hi);
}

static void run_dropout(void *state, const ls_call *call)
{
    const random_state *s = state;
    random_call c = {s, lsi_key_of(call->in[1]), call->in[0], call->out[0], call->scratch};

    if (s->samples * s->per_sample == 0) return;
    if (s->drop != NULL) {
        ls_parallel_run(s->threads, s->drop, &c);
        return;
    }
    for_tiles(&c, 0, 1, use_factor);
    lsi_channel_job_apply(&s->job, &c);
}

static random_state random_of(const ls_device *dev, ls_shape x, const ls_random_attr *a)
{
    random_state s = {.table = LSI_PICK(lsi_random_avx512, lsi_random_avx2),
                      .attr = *a,
                      .samples = x.dim[0],
                      .threads = lsi_threads_for(dev, ls_shape_count(x) * 4)};

    s.per_sample = s.samples > 0 ? ls_shape_count(x) / s.samples : 0;
    return s;
}

ls_status lsi_plan_dropout(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_vinfo *x = lsi_in(g, n, 0);
    random_state s = random_of(dev, x->shape, n->attr);
    size_t scratch = 0;

    s.type = x->dtype;
    s.move = LSI_PICK(lsi_move_avx512, lsi_move_avx2);
    if (s.table == NULL || !(s.type == LS_F32 || s.type == LS_BF16 || s.type == LS_F16) ||
        !lsi_outs_are(g, n, 0, 1, s.type, x->layout))
        return LS_UNSUPPORTED;
    if (s.type != LS_F32 && s.attr.per_channel && x->layout != &lsi_layout_c16) return LS_UNSUPPORTED;
    /* uniform < p exactly when the 24 bits are less than p * 2^24, rounded up. */
    s.limit = (uint32_t)ceil(s.attr.p * 0x1p24);
    s.scale = (float)(1 / (1 - s.attr.p));
    s.drop = drop_thread;
    if (s.attr.per_channel || x->layout == &lsi_layout_c16) {
        s.channels = x->shape.dim[1];
        s.pixels = s.channels > 0 ? s.per_sample / s.channels : 0;
        s.drop = drop_c16_thread;
    }
    if (s.attr.per_channel) {
        s.per_sample = s.pixels > 0 ? s.channels : 0;
        s.drop = drop_planes_thread;
    }
    if (s.attr.per_channel && x->layout == &lsi_layout_c16) {
        s.channel_table = LSI_PICK_STORED(s.type, lsi_channels);
        s.job = (lsi_channel_job){.view = lsi_channels_of(x->shape, 1, x->layout, false),
                                  .unit = s.channel_table->unit,
                                  .threads = s.threads,
                                  .apply = channel_apply};
        s.drop = NULL;
        scratch = (size_t)(s.samples * s.channels) * sizeof(float);
    }
    return lsi_kernel_make(out, run_dropout, &s, sizeof s, scratch, s.table->impl, err);
}

/* -- random tensors ---------------------------------------------------------------------------------------
 */

static void use_uniform(const random_call *c, const uint32_t *words, int64_t at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) c->y[at + i] = ls_rng_uniform(words[i]);
}

static void uniform_thread(int thread, int n_threads, void *arg)
{
    for_tiles(arg, thread, n_threads, use_uniform);
}

/* An element's pair of words may begin before it: tiles are widened to whole pairs. */
static void normal_thread(int thread, int n_threads, void *arg)
{
    uint32_t words[TILE + LSI_WORDS_SLACK];
    const random_call *c = arg;
    const random_state *s = c->s;
    int64_t at, end;

    ls_parallel_range_grain(s->samples * s->per_sample, 64, thread, n_threads, &at, &end);
    while (at < end) {
        int64_t sample = at / s->per_sample, e = at % s->per_sample, skip = e % 4;
        int64_t n = s->per_sample - e < end - at ? s->per_sample - e : end - at;
        if (n > TILE - skip - 1) n = TILE - skip - 1;
        s->table->words(&c->key, s->attr.stream, (uint32_t)sample, (uint32_t)(e / 4), n + skip + 1, words);
        for (int64_t i = skip; i < skip + n; i++) {
            double z = ls_rng_normal(words[i / 2 * 2], words[i / 2 * 2 + 1], (int)(i % 2));
            c->y[at + i - skip] = (float)(s->attr.p * z);
        }
        at += n;
    }
}

static void run_uniform(void *state, const ls_call *call)
{
    const random_state *s = state;
    random_call c = {.s = s, .key = lsi_key_of(call->in[0]), .y = call->out[0]};

    if (s->samples * s->per_sample > 0) ls_parallel_run(s->threads, uniform_thread, &c);
}

static void run_normal(void *state, const ls_call *call)
{
    const random_state *s = state;
    random_call c = {.s = s, .key = lsi_key_of(call->in[0]), .y = call->out[0]};

    if (s->samples * s->per_sample > 0) ls_parallel_run(s->threads, normal_thread, &c);
}

ls_status lsi_plan_random(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    random_state s = random_of(dev, lsi_out(g, n, 0)->shape, n->attr);
    bool normal = n->op == &ls_op_random_normal;

    if (s.table == NULL || !lsi_outs_are(g, n, 0, 1, LS_F32, &ls_layout_plain)) return LS_UNSUPPORTED;
    return lsi_kernel_make(out, normal ? run_normal : run_uniform, &s, sizeof s, 0, s.table->impl, err);
}
