/* norm.c: batch norm and instance norm, both ways, with fused activation and residual.
 *
 * Forward is a pass for the moments and one that normalises; backward a pass for two sums and one for dx.
 * Moments are sums of x - k and its square with k an element of the channel, which is exact enough when the
 * mean is far from zero, and in double beyond short chunks. */
#include <math.h>

#include "backend/cpu/channels.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

typedef struct norm_state {
    ls_dtype type; /* of the maps */
    lsi_channel_job job;
    const lsi_channel_table *table;
    ls_norm_attr attr;
    size_t params_at; /* per-channel parameters in scratch, behind the partial sums */
    bool batch;       /* batch norm; else instance norm */
    bool tracks;      /* batch norm that moves running statistics on: all but those computed again */
} norm_state;

typedef struct norm_run {
    const norm_state *s;
    const void *x, *residual;
    const float *gamma, *beta, *running_mean, *running_var;
    void *y;
    float *mean, *invstd, *new_mean, *new_var;
    float *scale;
} norm_run;

/* Channel arrays of group g: instance norm has its own for every image. */
static int64_t group_at(const norm_state *s, int64_t group)
{
    return group * s->job.view.c;
}

/* One element of every channel of the unit: the first of the group. */
static void first_elements(const norm_run *r, int64_t group, int64_t ch, float *shift)
{
    const lsi_channels *v = &r->s->job.view;
    int64_t image = v->s > 0 ? group * (v->n * v->s / r->s->job.groups) / v->s : 0;

    if (!v->lanes) {
        shift[0] = lsi_get_float(r->x, r->s->type, (image * v->c + ch) * v->s);
        return;
    }
    for (int i = 0; i < r->s->table->unit; i++)
        shift[i] = ch + i < v->c
                       ? lsi_get_float(r->x, r->s->type, image * v->sn + ch / 16 * v->sb + ch % 16 + i)
                       : 0;
}

static void forward_reduce(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi, double *sums)
{
    const norm_run *r = ctx;
    float shift[LSI_UNIT_MAX];

    if (lo == hi) return;
    first_elements(r, group, ch, shift);
    r->s->table->moments(&r->s->job.view, r->x, ch, lo, hi, shift, sums);
}

static void update_running(const norm_run *r, int64_t ch, double n, double mean, double var)
{
    const ls_norm_attr *a = &r->s->attr;
    /* A batch of no samples says nothing about the data. */
    double m = n > 0 ? a->momentum : 0;

    if (a->unbiased_running && n > 1) var *= n / (n - 1);
    r->new_mean[ch] = (float)((1 - m) * (double)r->running_mean[ch] + m * mean);
    r->new_var[ch] = (float)((1 - m) * (double)r->running_var[ch] + m * var);
}

static void forward_finish(const void *ctx, int64_t group, int64_t ch, int n_ch, const double *sums)
{
    const norm_run *r = ctx;
    const lsi_channels *v = &r->s->job.view;
    double n = (double)(v->n * v->s / r->s->job.groups);
    int unit = v->lanes ? r->s->table->unit : 1;
    float shift[LSI_UNIT_MAX] = {0};

    if (n > 0) first_elements(r, group, ch, shift);
    for (int i = 0; i < n_ch; i++) {
        int64_t at = group_at(r->s, group) + ch + i;
        double d = n > 0 ? sums[i] / n : 0, mean = (double)shift[i] + d;
        double var = n > 0 ? sums[unit + i] / n - d * d : 0, invstd;
        /* Of a constant channel rounding may leave less than nothing, of which there is no root. */
        if (var < 0) var = 0;
        invstd = 1 / sqrt(var + r->s->attr.eps);
        r->mean[at] = (float)mean;
        r->invstd[at] = (float)invstd;
        if (!r->s->batch) continue;
        r->scale[at] = (float)(invstd * (double)r->gamma[at]);
        if (r->s->tracks) update_running(r, ch + i, n, mean, var);
    }
}

static void forward_apply(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi)
{
    const norm_run *r = ctx;
    int64_t at = group_at(r->s, group);
    lsi_norm_apply d = {.x = r->x,
                        .residual = r->residual,
                        .y = r->y,
                        .mean = r->mean + at,
                        .scale = (r->s->batch ? r->scale : r->invstd) + at,
                        .beta = r->beta,
                        .act = r->s->attr.act,
                        .slope = (float)r->s->attr.slope};

    r->s->table->norm(&r->s->job.view, &d, ch, lo, hi);
}

static void forward_run(void *state, const ls_call *call)
{
    const norm_state *s = state;
    norm_run r = {.s = s,
                  .x = call->in[0],
                  .y = call->out[0],
                  .mean = call->out[1],
                  .invstd = call->out[2],
                  .scale = (float *)((char *)call->scratch + s->params_at)};

    if (s->batch) {
        r.gamma = call->in[1];
        r.beta = call->in[2];
    }
    if (s->tracks) {
        r.running_mean = call->in[3];
        r.running_var = call->in[4];
        r.new_mean = call->out[3];
        r.new_var = call->out[4];
    }
    if (s->attr.residual) r.residual = call->in[s->tracks ? 5 : s->batch ? 3 : 1];
    lsi_channel_job_run(&s->job, &r, call->scratch);
}

typedef struct back_run {
    const norm_state *s;
    lsi_norm_back d;
    const float *gamma, *invstd;
    float *dgamma, *dbeta, *a, *b, *c;
} back_run;

static lsi_norm_back back_args(const back_run *r, int64_t group)
{
    int64_t at = group_at(r->s, group);
    lsi_norm_back d = r->d;

    d.mean += at;
    d.a = r->a + at;
    d.b = r->b + at;
    d.c = r->c + at;
    return d;
}

static void back_reduce(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi, double *sums)
{
    const back_run *r = ctx;
    lsi_norm_back d = back_args(r, group);

    r->s->table->norm_sums(&r->s->job.view, &d, ch, lo, hi, sums);
}

/* dx = gamma invstd (dz - mean(dz) - (x - mean) invstd^2 mean(dz (x - mean))) */
static void back_finish(const void *ctx, int64_t group, int64_t ch, int n_ch, const double *sums)
{
    const back_run *r = ctx;
    const lsi_channels *v = &r->s->job.view;
    double n = (double)(v->n * v->s / r->s->job.groups);
    int unit = v->lanes ? r->s->table->unit : 1;

    for (int i = 0; i < n_ch; i++) {
        int64_t at = group_at(r->s, group) + ch + i;
        double inv = (double)r->invstd[at], a = inv * (r->gamma != NULL ? (double)r->gamma[at] : 1);
        r->a[at] = (float)a;
        r->b[at] = (float)(n > 0 ? -a * inv * inv * sums[unit + i] / n : 0);
        r->c[at] = (float)(n > 0 ? -a * sums[i] / n : 0);
        if (r->dgamma == NULL) continue;
        r->dgamma[at] = (float)(inv * sums[unit + i]);
        r->dbeta[at] = (float)sums[i];
    }
}

static void back_apply(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi)
{
    const back_run *r = ctx;
    lsi_norm_back d = back_args(r, group);

    r->s->table->norm_back(&r->s->job.view, &d, ch, lo, hi);
}

static void back_run_(void *state, const ls_call *call)
{
    const norm_state *s = state;
    int64_t params = s->job.groups * s->job.view.c;
    int stats = s->batch ? 3 : 2; /* where mean and invstd begin among the inputs */
    back_run r = {.s = s,
                  .d = {.dy = call->in[0],
                        .x = call->in[1],
                        .y = s->attr.act != LS_ACT_NONE ? call->in[stats + 2] : NULL,
                        .dx = call->out[0],
                        .dresidual = s->attr.residual ? call->out[s->batch ? 3 : 1] : NULL,
                        .mean = call->in[stats],
                        .act = s->attr.act,
                        .slope = (float)s->attr.slope},
                  .invstd = call->in[stats + 1],
                  .a = (float *)((char *)call->scratch + s->params_at)};

    r.b = r.a + params;
    r.c = r.b + params;
    if (s->batch) {
        r.gamma = call->in[2];
        r.dgamma = call->out[1];
        r.dbeta = call->out[2];
    }
    lsi_channel_job_run(&s->job, &r, call->scratch);
}

/* Whether every tensor of x's shape is of x's type and in its layout, and everything else plain and f32. */
static bool layouts_fit(const ls_graph *g, const ls_node *n, const ls_vinfo *x)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const ls_vinfo *v = g->values[i < n->n_in ? n->in[i] : n->out[i - n->n_in]];
        bool map = ls_shape_equal(v->shape, x->shape);
        if (v->dtype != (map ? x->dtype : LS_F32) || v->layout != (map ? x->layout : &ls_layout_plain))
            return false;
    }
    return true;
}

static ls_status plan_norm(ls_device *dev, const ls_graph *g, const ls_node *n, bool batch, bool backward,
                           ls_kernel *out, ls_err *err)
{
    const ls_vinfo *x = lsi_in(g, n, backward ? 1 : 0);
    const lsi_channel_table *table = LSI_PICK_STORED(x->dtype, lsi_channels);
    norm_state s = {.type = x->dtype, .table = table, .attr = *(const ls_norm_attr *)n->attr, .batch = batch};
    int64_t params;

    s.tracks = batch && !backward && n->n_out > 3;

    if (table == NULL || s.attr.by_beta || s.attr.sums || !layouts_fit(g, n, x)) return LS_UNSUPPORTED;
    s.job = (lsi_channel_job){.view = lsi_channels_of(x->shape, 1, x->layout, batch),
                              .groups = batch ? 1 : x->shape.dim[0],
                              .unit = table->unit,
                              .n_sums = 2,
                              .threads = lsi_threads_for(dev, ls_shape_count(x->shape)),
                              .reduce = backward ? back_reduce : forward_reduce,
                              .finish = backward ? back_finish : forward_finish,
                              .apply = backward ? back_apply : forward_apply};
    if (s.job.groups == 0) return LS_UNSUPPORTED;
    s.params_at = lsi_channel_job_scratch(&s.job);
    params = s.job.groups * s.job.view.c * (backward ? 3 : 1);
    return lsi_kernel_make(out, backward ? back_run_ : forward_run, &s, sizeof s,
                           s.params_at + (size_t)params * sizeof(float), table->impl, err);
}

ls_status lsi_plan_batch_norm(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    return plan_norm(dev, g, n, true, false, out, err);
}

ls_status lsi_plan_batch_norm_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                   ls_err *err)
{
    return plan_norm(dev, g, n, true, true, out, err);
}

ls_status lsi_plan_instance_norm(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                 ls_err *err)
{
    return plan_norm(dev, g, n, false, false, out, err);
}

ls_status lsi_plan_instance_norm_grad(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                      ls_err *err)
{
    return plan_norm(dev, g, n, false, true, out, err);
}
