/* region_product.c: convolutions in regions as products of tiles, and how they are cut into jobs of warps.
 *
 * What binds such a product are loads from shared memory: 4 for each 16 x 8 of one operand and 2 for each
 * 8 x 8 of the other, one a clock for all warps of a processor.  Large jobs read less; small ones keep more
 * warps busy, of which each waits for its loads and sums. */
#include "backend/cuda/region.h"

enum {
    REGISTERS = 48, /* of a thread, for one node's sums that stay */
    TILES = 8       /* 16 x 8 sums of a job, at most: four registers of a lane each */
};

/* -- what there is to compute -----------------------------------------------------------------------------
 */

static int fours(int n)
{
    return (n + 3) / 4;
}

/* Four channels of one tap are a group, or four taps of a row: whichever wastes less. */
static void count_taps(lsi_region_product *p, int channels, int kh, int kw)
{
    p->by_channels = fours(channels) * kh * kw <= channels * kh * fours(kw);
    p->l2 = p->by_channels ? kh : channels;
    p->l1 = p->by_channels ? kw : kh;
    p->lanes = p->by_channels ? channels : kw;
}

lsi_region_product lsi_region_product_of(const ls_graph *g, const ls_node *n)
{
    const ls_shape y = g->values[n->out[0]]->shape, w = n->n_in > 1 ? g->values[n->in[1]]->shape : y;
    lsi_region_product p = {0};

    if (n->op == &ls_op_conv2d || n->op == &ls_op_conv2d_dx) {
        p.rows = (int)(y.dim[2] * y.dim[3]);
        p.columns = (int)y.dim[1];
        count_taps(&p, (int)w.dim[n->op == &ls_op_conv2d ? 1 : 0], (int)w.dim[2], (int)w.dim[3]);
    } else if (n->op == &ls_op_conv2d_dw) { /* w is dy */
        p.rows = (int)(y.dim[1] * y.dim[2] * y.dim[3]);
        p.columns = (int)y.dim[0];
        p.l2 = (int)w.dim[2];
        p.l1 = 1;
        p.lanes = (int)w.dim[3];
    }
    return p;
}

/* -- jobs -------------------------------------------------------------------------------------------------
 */

static int parts_of(int all, int each)
{
    return (all + each - 1) / each;
}

int lsi_region_parts(const lsi_region_product *p)
{
    return p->split > 1 ? p->split * p->columns * ((p->rows + 3) / 8 * 8 + 4) : 0;
}

static int jobs_of(const lsi_region_product *p)
{
    return parts_of(p->rows, 16 * p->down) * parts_of(parts_of(p->columns, 8), p->across) * p->split;
}

/* Clocks: what all warps load, or what one of them waits for; and adding up parts. */
static long clocks(const lsi_region_product *p, const lsi_region_crew *w, bool adds)
{
    const int jobs = jobs_of(p), rounds = parts_of(jobs, w->warps), tiles = p->down * p->across;
    const long groups = (long)parts_of(p->l2, p->split) * p->l1 * fours(p->lanes);
    const long loads = groups * (2 * p->down + p->across), each = 8L * tiles;
    const long all = jobs * (loads + each);
    const long one = rounds * (120 + groups * (10 + 2 * (2 * p->down + p->across) + 4 * tiles) + 2 * each);
    const long adding = p->split > 1 && adds ? 150 + (long)p->rows * p->columns / 32 * (p->split + 1) : 0;

    return (all > one / w->beside ? all : one / w->beside) + adding;
}

long lsi_region_cut(lsi_region_product *p, const lsi_region_crew *w, bool stays, bool adds)
{
    long least = 0;

    for (int i = 0; i < 4 * 4 * 32; i++) {
        lsi_region_product c = *p;
        c.down = 1 + i % 4;
        c.across = 1 + i / 4 % 4;
        c.split = 1 + i / 16;
        if (c.split > c.l2 || c.across > parts_of(c.columns, 8) || c.down > parts_of(c.rows, 16)) continue;
        if (c.down * c.across > TILES || parts_of(c.l2, parts_of(c.l2, c.split)) < c.split) continue;
        if (lsi_region_parts(&c) > w->room) continue;
        if (stays && parts_of(jobs_of(&c), w->warps) * c.down * c.across * 4 > REGISTERS) continue;
        if (least > 0 && clocks(&c, w, adds) >= least) continue;
        least = clocks(&c, w, adds);
        *p = c;
    }
    return least;
}
