/* region_joined.c: dropouts of a region that the member before them applies: what nobody else reads need not
 * lie in memory first. */
#include "backend/cuda/region.h"

/* Members whose functions ask what becomes of an element. */
static bool applies(const ls_node *n)
{
    return n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx || n->op == &ls_op_maxpool2d_grad ||
           (n->op == &ls_op_matmul && !lsi_region_is_outer(n));
}

static int maker_of(const lsi_region *r, int32_t id)
{
    for (int i = 0; i < r->n; i++)
        if (r->member[i]->out[0] == id) return i;
    return -1;
}

static int readers_of(const lsi_region *r, int32_t id)
{
    int n = 0;

    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->member[i]->n_in; k++) n += r->member[i]->in[k] == id;
    return n;
}

void lsi_region_join(lsi_region *r, int n_out, const int32_t *out)
{
    for (int i = 0; i < r->n && out != NULL; i++) {
        const ls_node *n = r->member[i];
        const int maker = n->op == &ls_op_dropout ? maker_of(r, n->in[0]) : -1;
        bool given = false;
        for (int k = 0; k < n_out; k++) given = given || out[k] == n->in[0];
        if (maker < 0 || given || !applies(r->member[maker]) || readers_of(r, n->in[0]) > 1) continue;
        r->dropout[maker] = n;
    }
}

bool lsi_region_is_joined(const lsi_region *r, const ls_node *n)
{
    for (int i = 0; i < r->n; i++)
        if (r->dropout[i] == n) return true;
    return false;
}
