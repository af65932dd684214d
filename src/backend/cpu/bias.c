/* bias.c: the bias along an axis, and its gradient fused with that of an activation. */
#include "backend/cpu/channels.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

typedef struct bias_state {
    lsi_channel_job job;
    const lsi_channel_table *table;
    ls_bias_act_attr attr;
    ls_dtype sums; /* type of the bias' gradient */
} bias_state;

typedef struct bias_run {
    const bias_state *s;
    const void *x;
    const float *b;
    void *y;
} bias_run;

static void bias_apply(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi)
{
    const bias_run *r = ctx;

    (void)group;
    r->s->table->bias(&r->s->job.view, r->x, r->b, r->y, ch, lo, hi);
}

static void run_bias(void *state, const ls_call *call)
{
    const bias_state *s = state;
    bias_run r = {s, call->in[0], call->in[1], call->out[0]};

    lsi_channel_job_apply(&s->job, &r);
}

typedef struct grad_run {
    const bias_state *s;
    lsi_act_back d;
    void *dbias;
} grad_run;

static void grad_reduce(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi, double *sums)
{
    const grad_run *r = ctx;

    (void)group;
    r->s->table->act_back(&r->s->job.view, &r->d, ch, lo, hi, sums);
}

static void grad_finish(const void *ctx, int64_t group, int64_t ch, int n_ch, const double *sums)
{
    const grad_run *r = ctx;

    (void)group;
    /* Added up in double and rounded once, so that the number of threads hardly shows. */
    for (int i = 0; i < n_ch; i++) lsi_put_float(r->dbias, r->s->sums, ch + i, (float)sums[i]);
}

static void run_grad(void *state, const ls_call *call)
{
    const bias_state *s = state;
    grad_run r = {.s = s,
                  .d = {.dy = call->in[0],
                        .y = call->in[1],
                        .dz = call->out[0],
                        .act = s->attr.act,
                        .slope = (float)s->attr.slope},
                  .dbias = call->out[1]};

    lsi_channel_job_run(&s->job, &r, call->scratch);
}

static bool prepare(bias_state *s, const ls_device *dev, const ls_vinfo *x, int axis)
{
    s->table = LSI_PICK_STORED(x->dtype, lsi_channels);
    if (s->table == NULL) return false;
    /* Blocked layouts block axis 1; along another one their channels do not lie together. */
    if (x->layout != &ls_layout_plain && axis != 1) return false;
    s->job = (lsi_channel_job){.view = lsi_channels_of(x->shape, axis, x->layout, true),
                               .groups = 1,
                               .unit = s->table->unit,
                               .n_sums = 1,
                               .threads = lsi_threads_for(dev, ls_shape_count(x->shape)),
                               .reduce = grad_reduce,
                               .finish = grad_finish};
    return true;
}

ls_status lsi_plan_bias(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out, ls_err *err)
{
    const ls_vinfo *x = lsi_in(g, n, 0);
    bias_state s = {0};

    if (!prepare(&s, dev, x, ((const ls_axis_attr *)n->attr)->axis) ||
        lsi_out(g, n, 0)->layout != x->layout || lsi_out(g, n, 0)->dtype != x->dtype ||
        lsi_in(g, n, 1)->dtype != LS_F32)
        return LS_UNSUPPORTED;
    s.job.apply = bias_apply;
    return lsi_kernel_make(out, run_bias, &s, sizeof s, 0, s.table->impl, err);
}

ls_status lsi_plan_bias_act_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    const ls_vinfo *dy = lsi_in(g, n, 0);
    bias_state s = {.attr = *(const ls_bias_act_attr *)n->attr};

    if (!prepare(&s, dev, dy, s.attr.axis) || lsi_in(g, n, 1)->layout != dy->layout ||
        lsi_out(g, n, 0)->layout != dy->layout || lsi_in(g, n, 1)->dtype != dy->dtype ||
        lsi_out(g, n, 0)->dtype != dy->dtype)
        return LS_UNSUPPORTED;
    s.sums = lsi_out(g, n, 1)->dtype;
    return lsi_kernel_make(out, run_grad, &s, sizeof s, lsi_channel_job_scratch(&s.job), s.table->impl, err);
}
