/* region_rounded.c: what lies rounded in a region's memory.
 *
 * In tf32 a product rounds its operands.  What products alone read, and those who ask for no more than a sign
 * or add it up, lies rounded in shared memory: it is read many times, and rounding takes as long as reading.
 * What leaves the region does so as it is. */
#include "backend/cuda/region.h"

static bool reads_rounded(const ls_node *n, int k)
{
    if (n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx) return k < 2;
    if (n->op == &ls_op_conv2d_dw) return true;
    return false;
}

static bool bears_rounding(const ls_node *n, int k)
{
    const ls_bias_act_attr *a = n->attr;

    if (n->op == &ls_op_bias_act_grad)
        return k == 1 && (a->act == LS_ACT_RELU || a->act == LS_ACT_LEAKY || a->act == LS_ACT_NONE);
    if (n->op == &ls_op_maxpool2d_grad) return k == 2;
    return n->op == &ls_op_reduce_sum;
}

bool lsi_region_only_products(const lsi_region *r, int32_t id)
{
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->member[i]->n_in && !ls_optim_is(r->member[i]->op); k++)
            if (r->member[i]->in[k] == id && !reads_rounded(r->member[i], k)) return false;
    return true;
}

static void keep_place_rounded(lsi_region *r, int place)
{
    bool read = false, given = false;

    for (int i = 0; i < r->n; i++) {
        const ls_node *n = r->member[i];
        const lsi_region_value *y = lsi_region_value_of(r, n->out[0]);
        const bool same = (n->op->flags & LS_OP_VIEW) || lsi_region_is_joined(r, n);
        if (same && y->place == place && y->output >= 0) return;
        for (int k = 0; k < n->n_in; k++) {
            const lsi_region_value *v = lsi_region_value_of(r, n->in[k]);
            if (v->place != place || same) continue;
            if (!reads_rounded(n, k) && !bears_rounding(n, k)) return;
            read = read || reads_rounded(n, k);
        }
    }
    for (int i = 0; i < r->n_values; i++)
        if (r->value[i].place == place && (r->value[i].output >= 0 || r->value[i].input >= 0)) given = true;
    if (read) r->place[place].kept = given ? LSI_REGION_AFTERWARDS : LSI_REGION_WHEN_STORED;
}

void lsi_region_keep_rounded(lsi_region *r)
{
    for (int i = 0; i < r->n_places && r->machine.rounded; i++)
        if (!r->place[i].bytes) keep_place_rounded(r, i);
}
