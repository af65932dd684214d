/* reduce.c: sums over sets of dimensions, as sums per channel of a suitable view (channels.h).
 *
 * After neighbouring dimensions of a kind are merged, the patterns in use are: everything, the last
 * dimensions, the first ones, all but one in the middle, and one in the middle.  Sets that alternate more
 * often are left to the reference kernel. */
#include "backend/cpu/channels.h"
#include "backend/cpu/kernel_util.h"
#include "backend/cpu/planners.h"

typedef struct sum_state {
    lsi_channel_job job;
    const lsi_channel_table *table;
    ls_dtype to;
} sum_state;

typedef struct sum_run {
    const sum_state *s;
    lsi_act_back d;
    void *y;
} sum_run;

static void sum_reduce(const void *ctx, int64_t group, int64_t ch, int64_t lo, int64_t hi, double *sums)
{
    const sum_run *r = ctx;

    (void)group;
    r->s->table->act_back(&r->s->job.view, &r->d, ch, lo, hi, sums);
}

static void sum_finish(const void *ctx, int64_t group, int64_t ch, int n_ch, const double *sums)
{
    const sum_run *r = ctx;

    for (int i = 0; i < n_ch; i++)
        lsi_put_float(r->y, r->s->to, group * r->s->job.view.c + ch + i, (float)sums[i]);
}

static void run(void *state, const ls_call *call)
{
    const sum_state *s = state;
    sum_run r = {.s = s, .d = {.dy = call->in[0], .act = LS_ACT_NONE}, .y = call->out[0]};

    lsi_channel_job_run(&s->job, &r, call->scratch);
}

/* Dimensions merged by whether they are reduced; those of size 1 vanish. */
typedef struct pattern {
    int n;
    int64_t size[LS_MAX_RANK];
    bool reduced[LS_MAX_RANK];
} pattern;

static pattern pattern_of(ls_shape x, unsigned axes)
{
    pattern p = {0};

    for (int i = 0; i < x.rank; i++) {
        bool reduced = (axes & 1u << i) != 0;
        if (x.dim[i] == 1) continue;
        if (p.n > 0 && p.reduced[p.n - 1] == reduced) {
            p.size[p.n - 1] *= x.dim[i];
        } else {
            p.size[p.n] = x.dim[i];
            p.reduced[p.n++] = reduced;
        }
    }
    return p;
}

/* Neighbouring elements of `c` sums, `s` apart elements of one, `n` times. */
static lsi_channels columns(int64_t n, int64_t s, int64_t c)
{
    return (lsi_channels){.lanes = true, .n = n, .c = c, .s = s, .sn = s * c, .sb = 16, .sp = c};
}

static bool view_of(const pattern *p, lsi_channels *v, int64_t *groups)
{
    const int64_t *d = p->size;

    *groups = 1;
    if (p->n == 0 || (p->n == 1 && p->reduced[0])) {
        *v = (lsi_channels){.n = 1, .c = 1, .s = p->n == 0 ? 1 : d[0]};
    } else if (p->n == 2 && p->reduced[1]) {
        *v = (lsi_channels){.n = d[0], .c = 1, .s = d[1]};
        *groups = d[0];
    } else if (p->n == 2) {
        *v = columns(1, d[0], d[1]);
    } else if (p->n == 3 && p->reduced[0]) {
        *v = (lsi_channels){.n = d[0], .c = d[1], .s = d[2]};
    } else if (p->n == 3) {
        *v = columns(d[0], d[1], d[2]);
        *groups = d[0];
    } else {
        return false;
    }
    return true;
}

ls_status lsi_plan_reduce_sum(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                              ls_err *err)
{
    const ls_reduce_attr *a = n->attr;
    const ls_vinfo *x = lsi_in(g, n, 0);
    sum_state s = {.table = LSI_PICK_STORED(x->dtype, lsi_channels), .to = lsi_out(g, n, 0)->dtype};
    pattern p = pattern_of(x->shape, a->axes);

    /* An image of one pixel is the same in both layouts, so a sum that keeps its dimensions may be called
     * either. */
    if (s.table == NULL || ls_shape_count(x->shape) == 0 ||
        (x->layout == &ls_layout_plain && lsi_out(g, n, 0)->layout != &ls_layout_plain))
        return LS_UNSUPPORTED;
    s.job = (lsi_channel_job){.unit = s.table->unit,
                              .n_sums = 1,
                              .threads = lsi_threads_for(dev, ls_shape_count(x->shape)),
                              .reduce = sum_reduce,
                              .finish = sum_finish};
    if (x->layout == &lsi_layout_c16 && (a->axes == 0xcu || a->axes == 0xdu)) {
        s.job.view = lsi_channels_of(x->shape, 1, x->layout, false);
        s.job.groups = a->axes == 0xcu ? x->shape.dim[0] : 1;
    } else if (x->layout != &ls_layout_plain || !view_of(&p, &s.job.view, &s.job.groups)) {
        return LS_UNSUPPORTED;
    }
    return lsi_kernel_make(out, run, &s, sizeof s, lsi_channel_job_scratch(&s.job), s.table->impl, err);
}
