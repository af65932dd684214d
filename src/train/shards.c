/* shards.c: shards dealt to ranks, and to the lanes of a rank. */
#include "train/shards.h"

#include <math.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "exec/memory.h"

enum { LANE_PLANS = 12 };

typedef struct lane {
    ls_state *state;
    ls_batch_plan plans[LANE_PLANS];
    int n_plans;
    ls_batch_plan *now; /* the one it runs next */
    ls_err outcome;
} lane;

struct ls_shards {
    ls_session *session;
    ls_deal deal;
    lane *lanes;
};

ls_status ls_shards_deal(ls_deal *out, int64_t n_shards, int64_t update, int threads, int rank, int ranks,
                         ls_err *err)
{
    int64_t lo, hi;

    *out = (ls_deal){.n_shards = n_shards, .update = update};
    if (n_shards < ranks || update < n_shards)
        return ls_fail(
            err, LS_INVALID,
            "parallel.shards=%lld must lie between the number of ranks (%d) and the samples of an update "
            "(%lld)",
            (long long)n_shards, ranks, (long long)update);
    out->share = (update + n_shards - 1) / n_shards;
    ls_loader_share(update, n_shards, rank, ranks, &lo, &hi, &out->first, &out->end);
    out->lanes = threads > 0 ? threads : ls_parallel_default_threads(1);
    if (out->lanes > out->end - out->first) out->lanes = (int)(out->end - out->first);
    return LS_OK;
}

ls_status ls_shards_create(ls_shards **out, ls_session *s, const ls_deal *deal, ls_err *err)
{
    ls_shards *x = ls_alloc(LS_MEM_PLAN, sizeof *x);
    ls_status st = LS_OK;

    *out = x;
    if (x == NULL) return ls_fail(err, LS_NOMEM, "shards: no memory");
    x->session = s;
    x->deal = *deal;
    x->lanes = ls_alloc(LS_MEM_PLAN, sizeof *x->lanes * (size_t)deal->lanes);
    if (x->lanes == NULL) return ls_fail(err, LS_NOMEM, "shards: no memory");
    for (int i = 0; i < deal->lanes; i++) {
        LS_TRY(ls_state_create_beside(&x->lanes[i].state, s->state, err));
        ls_state_set_peers(x->lanes[i].state, s->peers);
    }
out:
    return st;
}

void ls_shards_destroy(ls_shards *x)
{
    if (x == NULL) return;
    for (int i = 0; x->lanes != NULL && i < x->deal.lanes; i++) {
        for (int k = 0; k < x->lanes[i].n_plans; k++) ls_batch_plan_release(&x->lanes[i].plans[k]);
        ls_state_destroy(x->lanes[i].state);
    }
    ls_free(x->lanes);
    ls_free(x);
}

const ls_deal *ls_shards_dealt(const ls_shards *x)
{
    return &x->deal;
}

void ls_shards_add_memory(const ls_shards *x, ls_plan_memory *m)
{
    for (int i = 0; i < x->deal.lanes; i++) {
        for (int k = 0; k < x->lanes[i].n_plans; k++) ls_memory_add_plan(m, x->lanes[i].plans[k].plan);
        ls_memory_add_workspace(m, x->lanes[i].state);
        ls_memory_add_state(m, x->lanes[i].state);
    }
}

/* -- plans of lanes ---------------------------------------------------------------------------------------
 */

static ls_status lane_plan(const ls_shards *x, lane *l, ls_mode mode, int stage, int64_t n,
                           ls_batch_plan **out, ls_err *err)
{
    const ls_strategy how = ls_session_how(x->session, mode, stage);
    ls_status st;

    for (int i = 0; i < l->n_plans; i++) {
        *out = &l->plans[i];
        if ((*out)->mode == mode && (*out)->stage == stage && (*out)->batch == n) return LS_OK;
    }
    if (l->n_plans == LANE_PLANS) ls_batch_plan_release(&l->plans[--l->n_plans]);
    *out = &l->plans[l->n_plans];
    st = ls_batch_plan_open(*out, x->session, (ls_build){.mode = mode}, &how, n, l->state, err);
    if (st == LS_OK)
        l->n_plans++;
    else
        ls_batch_plan_release(*out);
    return st;
}

/* They are the first of the first lane, which keeps them to the end. */
ls_status ls_shards_open_usual(ls_shards *x, ls_mode mode, int64_t batch, ls_err *err)
{
    ls_batch_plan *p;
    ls_status st = LS_OK;

    _Static_assert((int)LANE_PLANS > (int)LS_SESSION_STAGES, "the last place is that of odd sizes in turn");
    for (int i = 0; i < x->session->n_stages; i++)
        LS_TRY(lane_plan(x, &x->lanes[0], mode, i, batch, &p, err));
out:
    return st;
}

const ls_batch_plan *ls_shards_usual(const ls_shards *x, int stage)
{
    return &x->lanes[0].plans[stage];
}

ls_status ls_shards_plan(ls_shards *x, int64_t n, ls_batch_plan **out, ls_err *err)
{
    return lane_plan(x, &x->lanes[0], LS_EVAL, 0, n, out, err);
}

/* -- running ------------------------------------------------------------------------------------------------
 */

/* What the lanes compute next. */
typedef struct wave {
    const ls_shards *x;
    const ls_shard_work *w;
    int64_t first; /* the first lane's shard */
} wave;

/* The samples [*lo, *hi) of lane i within the global batch; none where it has no shard. */
static bool lane_samples(const wave *v, int i, int64_t *lo, int64_t *hi)
{
    const ls_deal *d = &v->x->deal;

    *lo = *hi = 0;
    if (v->first + i >= d->end) return false;
    ls_parallel_range(v->w->b->global_n, (int)(v->first + i), (int)d->n_shards, lo, hi);
    return *hi > *lo;
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

static ls_status run_samples(const wave *v, const lane *l, int64_t shard, int64_t lo, int64_t hi, ls_err *err)
{
    const ls_shard_work *w = v->w;
    const ls_batch *b = w->b;
    const ls_field *fields;
    const int n_fields = ls_dataset_fields(w->data, &fields);
    const int64_t mine = b->position - b->global_position;
    const bool trains = w->mode == LS_TRAIN;
    void *from[LS_SESSION_INPUTS];
    ls_status st = LS_OK;

    for (int i = 0; i < n_fields; i++)
        from[i] = (char *)b->fields[i] + (size_t)(lo - mine) * ls_dataset_field_bytes(w->data, i);
    ls_session_feed(l->now, fields, n_fields, from);
    LS_TRY(copy_buffers(v->x->session->state, l, err));
    ls_session_write_scalar(l->now, "gradient.weight", (double)(hi - lo) / (double)b->global_n);
    ls_session_write_scalar(l->now, "shard", (double)shard);
    if (w->faults) ls_session_write_scalar(l->now, "loss_scale", w->overflows ? INFINITY : 1);
    ls_step_write_rng(l->now->plan, w->seed, trains ? (uint32_t)w->step : LS_EVAL_STEP,
                      (uint32_t)(trains ? lo : b->global_position + lo));
    LS_TRY(ls_plan_run(l->now->plan, err));
out:
    return st;
}

static void run_lane(int thread, int n_threads, void *arg)
{
    const wave *v = arg;
    lane *l = &v->x->lanes[thread];
    int64_t lo, hi;

    (void)n_threads;
    l->outcome.status = LS_OK;
    if (lane_samples(v, thread, &lo, &hi))
        l->outcome.status = run_samples(v, l, v->first + thread, lo, hi, &l->outcome);
}

/* Every lane gets its plan for its shard. */
static ls_status plan_lanes(const wave *v, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < v->x->deal.lanes; i++) {
        lane *l = &v->x->lanes[i];
        int64_t lo, hi;
        if (lane_samples(v, i, &lo, &hi))
            LS_TRY(lane_plan(v->x, l, v->w->mode, v->w->stage, hi - lo, &l->now, err));
    }
out:
    return st;
}

ls_status ls_shards_prepare(ls_shards *x, ls_err *err)
{
    const ls_batch full = {.global_n = x->deal.update};
    ls_shard_work w = {.mode = LS_TRAIN, .b = &full};
    ls_status st = LS_OK;

    for (w.stage = 0; w.stage < x->session->n_stages; w.stage++)
        for (wave v = {x, &w, x->deal.first}; v.first < x->deal.end; v.first += x->deal.lanes)
            LS_TRY(plan_lanes(&v, err));
out:
    return st;
}

/* Tells of the wave's shards; the first failure is the error. */
static ls_status end_wave(const wave *v, ls_shard_note note, void *ctx, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < v->x->deal.lanes && st == LS_OK; i++) {
        const lane *l = &v->x->lanes[i];
        int64_t lo, hi;
        if (l->outcome.status != LS_OK) return ls_fail(err, l->outcome.status, "%s", l->outcome.text);
        if (note != NULL && lane_samples(v, i, &lo, &hi)) st = note(ctx, v->first + i, l->now, lo, hi, err);
    }
    return st;
}

ls_status ls_shards_run(ls_shards *x, const ls_shard_work *w, ls_shard_note note, void *ctx, ls_err *err)
{
    ls_status st = LS_OK;

    for (wave v = {x, w, x->deal.first}; v.first < x->deal.end; v.first += x->deal.lanes) {
        LS_TRY(plan_lanes(&v, err));
        ls_parallel_run(x->deal.lanes, run_lane, &v);
        LS_TRY(end_wave(&v, note, ctx, err));
    }
out:
    return st;
}
