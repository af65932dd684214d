/* shards.c: lanes, leaves and their tree. */
#include "train/shards.h"

#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "exec/memory.h"
#include "train/breaks.h"
#include "train/team.h"

enum { LANE_PLANS = 12, MAX_LEVELS = 32, ALIGN = 16 };

typedef struct lane {
    ls_state *state;
    ls_batch_plan plans[LANE_PLANS];
    int n_plans;
    ls_batch_plan *now; /* the one it runs next */
    float *leaf;
    int64_t n; /* samples of the shard it has just computed; 0: none */
    ls_err outcome;
} lane;

/* A variable in a leaf. */
typedef struct item {
    const char *name;
    int64_t offset, count; /* in floats */
    ls_var_role role;
    const ls_tensor *of_session;
} item;

/* What the leaves of one stage of a step hold, and their sum over all ranks. */
typedef struct stage {
    item *items;
    int n_items;
    int64_t metrics, length; /* offset of the metrics, and floats of a leaf */
    ls_exchange *exchange;
} stage;

struct ls_shards {
    ls_session *session;
    ls_comm *own;                 /* where the session has none */
    int64_t n_shards, first, end; /* all, and this rank's */
    int64_t update, share;        /* samples of a full update, and most of a shard */
    int threads;
    lane *lanes;
    stage stages[LS_SESSION_STAGES];
    float *levels[MAX_LEVELS]; /* sums of 2^level leaves that wait for their sibling */
    int n_levels;
    float *memory; /* of leaves and levels */
};

/* -- making -----------------------------------------------------------------------------------------------
 */

static int64_t aligned(int64_t floats)
{
    return (floats + ALIGN - 1) / ALIGN * ALIGN;
}

/* What a leaf holds and where: sums of gradients, statistics, metrics, what ranks tell one another. */
static ls_status lay_out(stage *g, const ls_state *vars, const ls_plan *plan, ls_err *err)
{
    g->items = ls_alloc(LS_MEM_PLAN, sizeof *g->items * ((size_t)ls_state_count(vars) + 1));
    if (g->items == NULL) return ls_fail(err, LS_NOMEM, "shards: no memory");
    for (int i = 0; i < ls_state_count(vars); i++) {
        const ls_tensor *t = ls_state_at(vars, i);
        if (!ls_plan_moves(plan, t->name) || t->dtype != LS_F32) continue;
        g->items[g->n_items++] =
            (item){t->name, g->length, ls_shape_count(t->shape), ls_state_role(vars, i), t};
        g->length += aligned(ls_shape_count(t->shape));
    }
    g->metrics = g->length;
    g->length += aligned(LS_MAX_METRICS + LS_CONTROL_SLOTS);
    return LS_OK;
}

static ls_comm *comm_of(const ls_shards *x)
{
    return x->own != NULL ? x->own : x->session->comm;
}

static ls_exchange_options exchange_of(const ls_shards *x, const stage *g)
{
    return (ls_exchange_options){.name = "shards",
                                 .n = g->length,
                                 .n_shards = x->n_shards,
                                 .first_shard = x->first,
                                 .end_shard = x->end};
}

static ls_status open_stages(ls_shards *x, ls_err *err)
{
    const ls_session *s = x->session;
    int64_t longest = 1;
    ls_status st = LS_OK;

    if (s->comm == NULL) LS_TRY(ls_comm_open_self(&x->own, err));
    for (int i = 0; i < s->n_stages; i++) {
        ls_exchange_options how;
        LS_TRY(lay_out(&x->stages[i], s->state, s->plans[i].plan, err));
        how = exchange_of(x, &x->stages[i]);
        LS_TRY(ls_exchange_create(&x->stages[i].exchange, comm_of(x), &how, err));
    }
    for (int j = 0; j < ls_exchange_parts(x->stages[0].exchange); j++) {
        int64_t first, end;
        ls_exchange_part_range(x->stages[0].exchange, j, &first, &end);
        if (end - first > longest) longest = end - first;
    }
    while ((int64_t)1 << x->n_levels < longest) x->n_levels++;
    x->n_levels++;
out:
    return st;
}

/* Floats of the longest leaf. */
static int64_t leaf_length(const ls_shards *x)
{
    int64_t most = 0;

    for (int i = 0; i < x->session->n_stages; i++)
        if (x->stages[i].length > most) most = x->stages[i].length;
    return most;
}

/* Bytes of a leaf for every lane, and of the sums. */
static size_t leaf_bytes(const ls_shards *x)
{
    return sizeof *x->memory * (size_t)leaf_length(x) * (size_t)(x->threads + x->n_levels);
}

static ls_status open_lanes(ls_shards *x, ls_err *err)
{
    const size_t leaf = (size_t)leaf_length(x);
    ls_status st = LS_OK;

    x->lanes = ls_alloc(LS_MEM_PLAN, sizeof *x->lanes * (size_t)x->threads);
    x->memory = ls_alloc(LS_MEM_TENSOR, leaf_bytes(x));
    if (x->lanes == NULL || x->memory == NULL) return ls_fail(err, LS_NOMEM, "shards: no memory");
    for (int i = 0; i < x->threads; i++) {
        x->lanes[i].leaf = x->memory + (size_t)i * leaf;
        LS_TRY(ls_state_create_beside(&x->lanes[i].state, x->session->state, err));
    }
    for (int i = 0; i < x->n_levels; i++) x->levels[i] = x->memory + (size_t)(x->threads + i) * leaf;
out:
    return st;
}

ls_status ls_shards_create(ls_shards **out, ls_session *s, int64_t n_shards, int64_t update, int threads,
                           ls_err *err)
{
    ls_shards *x = ls_alloc(LS_MEM_PLAN, sizeof *x);
    int64_t lo, hi;
    ls_status st = LS_OK;

    *out = x;
    if (x == NULL) return ls_fail(err, LS_NOMEM, "shards: no memory");
    if (n_shards < s->ranks || update < n_shards)
        return ls_fail(
            err, LS_INVALID,
            "parallel.shards=%lld must lie between the number of ranks (%d) and the samples of an update "
            "(%lld)",
            (long long)n_shards, s->ranks, (long long)update);
    x->session = s;
    x->n_shards = n_shards;
    x->update = update;
    x->share = (update + n_shards - 1) / n_shards;
    ls_loader_share(update, n_shards, s->rank, s->ranks, &lo, &hi, &x->first, &x->end);
    x->threads = threads > 0 ? threads : ls_parallel_default_threads(1);
    if (ls_session_staging(s).alloc != NULL) x->threads = 1; /* a device with queues works by itself */
    if (x->threads > x->end - x->first) x->threads = (int)(x->end - x->first);
    LS_TRY(open_stages(x, err));
    LS_TRY(open_lanes(x, err));
out:
    return st;
}

void ls_shards_destroy(ls_shards *x)
{
    if (x == NULL) return;
    for (int i = 0; x->lanes != NULL && i < x->threads; i++) {
        for (int k = 0; k < x->lanes[i].n_plans; k++) ls_batch_plan_release(&x->lanes[i].plans[k]);
        ls_state_destroy(x->lanes[i].state);
    }
    for (int i = 0; i < LS_SESSION_STAGES; i++) {
        ls_exchange_destroy(x->stages[i].exchange);
        ls_free(x->stages[i].items);
    }
    ls_comm_close(x->own);
    ls_free(x->lanes);
    ls_free(x->memory);
    ls_free(x);
}

int ls_shards_threads(const ls_shards *x)
{
    return x->threads;
}

size_t ls_shards_leaf_bytes(const ls_shards *x, int of_stage)
{
    return (size_t)x->stages[of_stage].length * sizeof(float);
}

size_t ls_shards_comm_bytes(const ls_shards *x)
{
    size_t sum = 0;

    for (int i = 0; i < x->session->n_stages; i++) {
        const ls_exchange_options how = exchange_of(x, &x->stages[i]);
        sum += ls_exchange_bytes(comm_of(x), &how);
    }
    return sum;
}

void ls_shards_add_memory(const ls_shards *x, ls_plan_memory *m)
{
    for (int i = 0; i < x->threads; i++) {
        for (int k = 0; k < x->lanes[i].n_plans; k++) ls_memory_add_plan(m, x->lanes[i].plans[k].plan);
        ls_memory_add_state(m, x->lanes[i].state);
    }
    ls_memory_add_gradients(m, leaf_bytes(x));
    ls_memory_add_comm(m, ls_shards_comm_bytes(x));
}

/* -- computing shards --------------------------------------------------------------------------------------
 */

/* What the lanes compute next. */
typedef struct work {
    ls_shards *x;
    ls_mode mode;
    int stage;
    const ls_dataset *data;
    const ls_batch *b;
    uint64_t seed;
    int64_t step, first; /* the first lane's shard */
} work;

/* The samples [*lo, *hi) of shard s within the global batch. */
static void shard_samples(const work *w, int64_t s, int64_t *lo, int64_t *hi)
{
    ls_parallel_range(w->b->global_n, (int)s, (int)w->x->n_shards, lo, hi);
}

static ls_status lane_plan(const work *w, lane *l, int64_t n, ls_batch_plan **out, ls_err *err)
{
    const ls_shards *x = w->x;
    const ls_strategy how = {.stage = w->stage,
                             .part = w->mode == LS_TRAIN ? LS_PART_GRADIENTS : LS_PART_ALL,
                             .update = x->session->update_samples};
    ls_status st;

    for (int i = 0; i < l->n_plans; i++) {
        *out = &l->plans[i];
        if ((*out)->mode == w->mode && (*out)->stage == w->stage && (*out)->batch == n) return LS_OK;
    }
    if (l->n_plans == LANE_PLANS) ls_batch_plan_release(&l->plans[--l->n_plans]);
    *out = &l->plans[l->n_plans];
    st = ls_batch_plan_open(*out, x->session, (ls_build){.mode = w->mode}, &how, n, l->state, err);
    if (st == LS_OK)
        l->n_plans++;
    else
        ls_batch_plan_release(*out);
    return st;
}

/* Statistics start from the parameters' own; each shard moves them by its samples. */
static ls_status copy_buffers(const ls_state *from, const lane *l, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < ls_state_count(from); i++) {
        const ls_tensor *t = ls_state_at(from, i);
        const ls_tensor *to =
            ls_state_role(from, i) == LS_VAR_BUFFER ? ls_state_find(l->state, t->name) : NULL;
        if (to != NULL) LS_TRY(ls_tensor_copy(to, t, err));
    }
out:
    return st;
}

/* Values that are not weighted yet, into their place in a leaf. */
typedef struct weighing {
    float *to;
    float weight;
} weighing;

static ls_status weigh(void *ctx, const void *chunk, size_t offset, size_t bytes, ls_err *err)
{
    const weighing *w = ctx;
    const float *from = chunk;
    float *to = w->to + offset / sizeof *to;

    (void)err;
    for (size_t k = 0; k < bytes / sizeof *from; k++) to[k] = w->weight * from[k];
    return LS_OK;
}

static ls_status fill_leaf(const stage *g, const lane *l, const ls_plan *p, float weight, ls_err *err)
{
    int metric = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < g->n_items; i++) {
        const ls_tensor *from = ls_state_find(l->state, g->items[i].name);
        float *to = l->leaf + g->items[i].offset;
        if (g->items[i].role == LS_VAR_ACCUMULATED)
            LS_TRY(ls_tensor_read(from, 0, to, from->bytes, err));
        else
            LS_TRY(ls_tensor_visit(from, weigh, &(weighing){to, weight}, err));
    }
    memset(l->leaf + g->metrics, 0, sizeof *l->leaf * (size_t)(g->length - g->metrics));
    for (int i = 0; i < ls_plan_fetch_count(p) && metric < LS_MAX_METRICS; i++) {
        const ls_tensor *t = ls_plan_fetch_at(p, i);
        if (t->dtype != LS_F32 || t->shape.rank != 0) continue;
        LS_TRY(ls_tensor_visit(t, weigh, &(weighing){l->leaf + g->metrics + metric++, weight}, err));
    }
out:
    return st;
}

/* For whoever watches whether this rank gets on. */
static void beat(void *comm, int32_t node, uint64_t begun, uint64_t ended, uint64_t progressed)
{
    (void)node, (void)begun, (void)ended, (void)progressed;
    ls_comm_beat(comm);
}

static ls_status run_shard(const work *w, ls_plan *p, ls_err *err)
{
    ls_comm *comm = w->x->session->comm;

    return comm != NULL ? ls_plan_run_noted(p, beat, comm, err) : ls_plan_run(p, err);
}

/* The lane's shard, which begins at sample `lo` of the global batch. */
static ls_status run_samples(const work *w, const lane *l, int64_t lo, ls_err *err)
{
    const ls_shards *x = w->x;
    const ls_field *fields;
    const int n_fields = ls_dataset_fields(w->data, &fields);
    const int64_t mine = w->b->position - w->b->global_position;
    const float weight = (float)((double)l->n / (double)w->b->global_n);
    const ls_batch_plan *p = l->now;
    void *from[LS_SESSION_INPUTS];
    ls_status st = LS_OK;

    for (int i = 0; i < n_fields; i++)
        from[i] = (char *)w->b->fields[i] + (size_t)(lo - mine) * ls_dataset_field_bytes(w->data, i);
    ls_session_feed(p, fields, n_fields, from);
    LS_TRY(copy_buffers(x->session->state, l, err));
    if (w->mode == LS_TRAIN) {
        ls_session_write_scalar(p, "gradient.weight", (double)weight);
        ls_session_write_scalar(p, "gradient.keep", 0);
        ls_step_write_rng(p->plan, w->seed, (uint32_t)w->step, (uint32_t)lo);
        LS_TRY(run_shard(w, p->plan, err));
        LS_TRY(fill_leaf(&x->stages[w->stage], l, p->plan, weight, err));
    } else {
        ls_step_write_rng(p->plan, w->seed, LS_EVAL_STEP, (uint32_t)(w->b->global_position + lo));
        LS_TRY(run_shard(w, p->plan, err));
    }
out:
    return st;
}

static void run_lane(int thread, int n_threads, void *arg)
{
    const work *w = arg;
    const ls_shards *x = w->x;
    lane *l = &x->lanes[thread];
    int64_t lo, hi;

    (void)n_threads;
    l->n = 0;
    l->outcome.status = LS_OK;
    if (w->first + thread >= x->end) return;
    shard_samples(w, w->first + thread, &lo, &hi);
    l->n = hi - lo;
    if (l->n == 0)
        memset(l->leaf, 0, sizeof *l->leaf * (size_t)x->stages[w->stage].length);
    else
        l->outcome.status = run_samples(w, l, lo, &l->outcome);
}

/* Every lane gets its plan for the shards [w->first, w->first + threads), as far as they are this rank's. */
static ls_status plan_lanes(const work *w, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < w->x->threads && w->first + i < w->x->end; i++) {
        int64_t lo, hi;
        shard_samples(w, w->first + i, &lo, &hi);
        if (hi > lo) LS_TRY(lane_plan(w, &w->x->lanes[i], hi - lo, &w->x->lanes[i].now, err));
    }
out:
    return st;
}

ls_status ls_shards_prepare(ls_shards *x, ls_err *err)
{
    const ls_batch full = {.global_n = x->update};
    work w = {.x = x, .mode = LS_TRAIN, .b = &full};
    ls_status st = LS_OK;

    for (w.stage = 0; w.stage < x->session->n_stages; w.stage++)
        for (w.first = x->first; w.first < x->end; w.first += x->threads) LS_TRY(plan_lanes(&w, err));
out:
    return st;
}

/* Computes those shards side by side. */
static ls_status run_lanes(work *w, ls_err *err)
{
    const ls_shards *x = w->x;
    ls_status st = plan_lanes(w, err);

    if (st == LS_OK) ls_parallel_run(x->threads, run_lane, w);
    for (int i = 0; st == LS_OK && i < x->threads; i++)
        if (x->lanes[i].outcome.status != LS_OK)
            st = ls_fail(err, x->lanes[i].outcome.status, "%s", x->lanes[i].outcome.text);
    return st;
}

/* -- the tree ---------------------------------------------------------------------------------------------
 */

/* Adds the lanes' leaves to the sums, in the order of shards; a thread takes a range of the leaves' elements.
 * A counter in binary: where two sums of 2^k leaves meet, they become one of 2^(k+1). */
static void add_leaves(int thread, int n_threads, void *arg)
{
    const work *w = arg;
    ls_shards *x = w->x;
    const stage *g = &x->stages[w->stage];
    int64_t lo, hi;

    ls_parallel_range_grain(g->length, ALIGN, thread, n_threads, &lo, &hi);
    for (int i = 0, j = 0; i < x->threads && w->first + i < x->end; i++) {
        const int64_t s = w->first + i;
        const float *carry = x->lanes[i].leaf;
        int64_t first, end, index;
        int level = 0;
        for (ls_exchange_part_range(g->exchange, j, &first, &end); s >= end;)
            ls_exchange_part_range(g->exchange, ++j, &first, &end);
        index = s - first;
        for (; (index >> level & 1) != 0; level++) {
            ls_sum_into(x->levels[level] + lo, carry + lo, hi - lo);
            carry = x->levels[level];
        }
        if (s + 1 < end) {
            memcpy(x->levels[level] + lo, carry + lo, sizeof *carry * (size_t)(hi - lo));
            continue;
        }
        /* The part is complete: what waits is larger and on the left. */
        for (; level < x->n_levels; level++) {
            if ((index >> level & 1) == 0) continue;
            ls_sum_into(x->levels[level] + lo, carry + lo, hi - lo);
            carry = x->levels[level];
        }
        memcpy(ls_exchange_part(g->exchange, j) + lo, carry + lo, sizeof *carry * (size_t)(hi - lo));
    }
}

/* The sum over all shards becomes the session's. */
static ls_status take_result(const stage *g, const ls_plan *p, int64_t samples, ls_metric_sums *now,
                             ls_control *control, ls_err *err)
{
    const float *sum = ls_exchange_result(g->exchange);
    int metric = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < g->n_items; i++)
        LS_TRY(ls_tensor_write(g->items[i].of_session, 0, sum + g->items[i].offset,
                               sizeof *sum * (size_t)g->items[i].count, err));
    for (int i = 0; i < ls_plan_fetch_count(p) && metric < LS_MAX_METRICS; i++) {
        const ls_tensor *t = ls_plan_fetch_at(p, i);
        if (t->dtype == LS_F32 && t->shape.rank == 0)
            ls_metric_add(now, t->name, (double)sum[g->metrics + metric++], samples);
    }
    for (int i = 0; control != NULL && i < LS_CONTROL_SLOTS; i++)
        control->slot[i] = (double)sum[g->metrics + LS_MAX_METRICS + i];
out:
    return st;
}

ls_status ls_shards_gradients(ls_shards *x, int of_stage, const ls_dataset *data, const ls_batch *b,
                              uint64_t seed, int64_t step, ls_metric_sums *now, ls_control *control,
                              ls_err *err)
{
    work w = {.x = x, .mode = LS_TRAIN, .stage = of_stage, .data = data, .b = b, .seed = seed, .step = step};
    stage *g = &x->stages[of_stage];
    ls_status st = LS_OK;

    for (w.first = x->first; w.first < x->end; w.first += x->threads) {
        LS_TRY(run_lanes(&w, err));
        for (int i = 0; control != NULL && w.first == x->first && i < LS_CONTROL_SLOTS; i++)
            x->lanes[0].leaf[g->metrics + LS_MAX_METRICS + i] = (float)control->slot[i];
        ls_parallel_run(x->threads, add_leaves, &w);
    }
    ls_exchange_start(g->exchange, 1);
    LS_TRY(ls_exchange_wait(g->exchange, err));
    LS_TRY(take_result(g, x->session->plans[of_stage].plan, b->global_n, now, control, err));
    if (of_stage == 0) now->samples += b->global_n; /* later stages see the same ones */
out:
    return st;
}

/* -- evaluation -------------------------------------------------------------------------------------------
 * The metrics of every shard of every batch, each from the one rank that computed it, added in one order. */

static ls_status note_shard(const work *w, int64_t batch, int i, double *values, ls_err *err)
{
    const lane *l = &w->x->lanes[i];
    double *to = values + (batch * w->x->n_shards + w->first + i) * LS_MAX_METRICS;
    int metric = 0;
    ls_status st = LS_OK;

    if (w->first + i >= w->x->end || l->n == 0) return LS_OK;
    for (int k = 0; k < ls_plan_fetch_count(l->now->plan) && metric < LS_MAX_METRICS; k++) {
        const ls_tensor *t = ls_plan_fetch_at(l->now->plan, k);
        if (t->dtype == LS_F32 && t->shape.rank == 0) LS_TRY(ls_tensor_read_scalar(t, &to[metric++], err));
    }
out:
    return st;
}

static ls_status gather_lanes(const work *w, ls_gather *gather, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < w->x->threads && w->first + i < w->x->end; i++) {
        int64_t lo, hi;
        shard_samples(w, w->first + i, &lo, &hi);
        if (hi > lo) LS_TRY(ls_gather_take(gather, w->x->lanes[i].now, w->b->global_position + lo, err));
    }
out:
    return st;
}

/* What there is to gather, also on a rank that has no samples. */
static ls_status prepare_gather(ls_shards *x, ls_gather *gather, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(lane_plan(&(work){.x = x, .mode = LS_EVAL}, &x->lanes[0], 1, &x->lanes[0].now, err));
    LS_TRY(ls_gather_prepare(gather, x->lanes[0].now, err));
out:
    return st;
}

static ls_status evaluate_batches(ls_shards *x, const ls_dataset *data, ls_loader *loader, double *values,
                                  ls_gather *gather, ls_err *err)
{
    const uint64_t seed = (uint64_t)ls_config_int(x->session->cfg, "seed");
    const int64_t n = ls_loader_batches_per_epoch(loader);
    ls_breaks breaks = ls_breaks_begin(x->session);
    ls_status st = LS_OK;

    if (gather->rows != NULL) {
        gather->rows->room = x->share * ((x->n_shards + x->session->ranks - 1) / x->session->ranks);
        LS_TRY(prepare_gather(x, gather, err));
    }
    for (int64_t k = 0; k < n; k++) {
        ls_batch b;
        work w = {.x = x, .mode = LS_EVAL, .data = data, .b = &b, .seed = seed};
        LS_TRY(ls_loader_next(loader, &b, err));
        for (w.first = x->first; w.first < x->end; w.first += x->threads) {
            LS_TRY(run_lanes(&w, err));
            for (int i = 0; i < x->threads; i++) LS_TRY(note_shard(&w, k, i, values, err));
            LS_TRY(gather_lanes(&w, gather, err));
        }
        LS_TRY(ls_gather_pass_on(gather, x->session->comm, err));
        LS_TRY(ls_breaks_after(&breaks, n - 1 - k, err));
    }
    if (!gather->prepared)
        LS_TRY(prepare_gather(x, gather, err)); /* fewer samples than shards, none for this rank */
out:
    return st;
}

/* Rank by rank the values of other ranks are zero, so that sums over ranks are exact. */
static ls_status add_values(ls_shards *x, int64_t samples, int64_t n_batches, double *values,
                            ls_metric_sums *sums, ls_err *err)
{
    const int64_t global = x->share * x->n_shards, count = n_batches * x->n_shards * LS_MAX_METRICS;
    const ls_plan *p = NULL;
    const ls_status st = ls_team_add(x->session->comm, values, count, "adding up metrics", err);

    if (st != LS_OK) return st;
    for (int i = 0; i < x->lanes[0].n_plans; i++)
        if (x->lanes[0].plans[i].mode == LS_EVAL) p = x->lanes[0].plans[i].plan;
    for (int64_t k = 0; p != NULL && k < n_batches * x->n_shards; k++) {
        const int64_t left = samples - k / x->n_shards * global;
        int64_t lo, hi;
        int metric = 0;
        ls_parallel_range(left < global ? left : global, (int)(k % x->n_shards), (int)x->n_shards, &lo, &hi);
        sums->samples += hi - lo;
        for (int i = 0; hi > lo && i < ls_plan_fetch_count(p) && metric < LS_MAX_METRICS; i++) {
            const ls_tensor *t = ls_plan_fetch_at(p, i);
            if (t->dtype == LS_F32 && t->shape.rank == 0)
                ls_metric_add(sums, t->name, values[k * LS_MAX_METRICS + metric++], hi - lo);
        }
    }
    return LS_OK;
}

ls_status ls_shards_evaluate(ls_shards *x, const ls_dataset *data, ls_gather *gather, ls_metric_sums *sums,
                             ls_err *err)
{
    const ls_loader_options options = {.batch = x->share * (x->end - x->first),
                                       .n_workers = (int)ls_config_int(x->session->cfg, "data.workers"),
                                       .memory = ls_session_staging(x->session),
                                       .rank = x->session->rank,
                                       .n_ranks = x->session->ranks,
                                       .global = x->share * x->n_shards,
                                       .shards = x->n_shards};
    ls_loader *loader = NULL;
    double *values = NULL;
    int64_t n;
    ls_status st = LS_OK;

    *sums = (ls_metric_sums){0};
    LS_TRY(ls_loader_create(&loader, data, &options, err));
    n = ls_loader_batches_per_epoch(loader);
    values = ls_alloc(LS_MEM_PLAN, sizeof *values * (size_t)(n * x->n_shards * LS_MAX_METRICS));
    if (values == NULL) {
        st = ls_fail(err, LS_NOMEM, "evaluation: no memory");
        goto out;
    }
    LS_TRY(evaluate_batches(x, data, loader, values, gather, err));
    LS_TRY(add_values(x, ls_dataset_count(data), n, values, sums, err));
out:
    ls_free(values);
    ls_loader_destroy(loader);
    return st;
}
