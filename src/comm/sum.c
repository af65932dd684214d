/* sum.c: runs a plan of additions over a range of elements.
 *
 * Inputs are read once and results written once, however many inputs there are: what lies between stays in
 * blocks that fit the first cache. */
#define SUM_LOOPS lsi_sum_loops_c
#include "comm/sum_template.h"

const lsi_sum_loops *lsi_sum_loops_best(bool past_cache)
{
    /* The flags are those the build gives to files named *_avx2.c. */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return &lsi_sum_loops_c;
    return past_cache ? &lsi_sum_loops_avx2_past_cache : &lsi_sum_loops_avx2;
}

void ls_sum_into(float *to, const float *from, int64_t n)
{
    lsi_sum_loops_best(false)->add(to, from, n);
}

/* What a rank of weight 0 has is not looked at: it may be infinite, and is nothing all the same. */
static const float nothing[LSI_SUM_BLOCK];

static const float *part(const float *const *in, const float *weight, int32_t i, int64_t lo)
{
    return weight[i] != 0 ? in[i] + lo : nothing;
}

/* One block: elements [lo, lo + n). */
static void run_block(const lsi_sum_plan *plan, const lsi_sum_loops *loops, const float *const *in,
                      const float *weight, float *stack, int64_t lo, int64_t n)
{
    float *next = stack; /* the block above the topmost */

    for (int i = 0; i < plan->n_moves; i++) {
        const lsi_move *m = &plan->move[i];
        switch (m->how) {
        case LSI_PUSH:
            loops->scale(next, part(in, weight, m->a, lo), weight[m->a], n);
            next += LSI_SUM_BLOCK;
            break;
        case LSI_PUSH_PAIR:
            loops->pair(next, part(in, weight, m->a, lo), weight[m->a], part(in, weight, m->b, lo),
                        weight[m->b], n);
            next += LSI_SUM_BLOCK;
            break;
        case LSI_ADD_INPUT:
            loops->add_scaled(next - LSI_SUM_BLOCK, part(in, weight, m->a, lo), weight[m->a], n);
            break;
        case LSI_ADD:
            next -= LSI_SUM_BLOCK;
            loops->add(next - LSI_SUM_BLOCK, next, n);
            break;
        }
    }
}

void lsi_sum_run(const lsi_sum_plan *plan, const lsi_sum_loops *loops, const float *const *in,
                 const float *weight, float scale_by, float *const *out, int64_t lo, int64_t hi, float *stack)
{
    if (plan->n_in == 2 && plan->n_out == 1 && scale_by == 1 && weight[0] != 0 && weight[1] != 0) {
        loops->pair_out(out[0] + lo, in[0] + lo, weight[0], in[1] + lo, weight[1], hi - lo);
        return;
    }
    for (int64_t at = lo; at < hi; at += LSI_SUM_BLOCK) {
        int64_t n = hi - at < LSI_SUM_BLOCK ? hi - at : LSI_SUM_BLOCK;
        run_block(plan, loops, in, weight, stack, at, n);
        for (int k = 0; k < plan->n_out; k++)
            loops->scale_out(out[k] + at, stack + k * LSI_SUM_BLOCK, scale_by, n);
    }
}
