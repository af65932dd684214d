/* own_piece.c: what differs between ranks that keep pieces: which piece is whose.
 *
 * Needs: a program, the same on all ranks, with `own_piece` where a rank takes its piece of what it has
 * whole. Leaves: slices of flat tensors, with zeros behind their ends. */
#include "ops/macros.h"
#include "passes/passes.h"

/* Elements [first, first + length) of a vector; zeros where it has none. */
static ls_value cut(ls_value flat, int64_t first, int64_t length)
{
    const int64_t count = ls_value_shape(flat).dim[0];
    const int64_t here = first >= count ? 0 : count - first < length ? count - first : length;
    const ls_value rest = here < length ? ls_fill(flat.g, LS_SHAPE(length - here), ls_value_dtype(flat), 0)
                                        : (ls_value){flat.g, -1};

    if (here == 0) return rest;
    flat = ls_slice(flat, 0, first, here);
    return here < length ? ls_concat(2, (ls_value[]){flat, rest}, 0) : flat;
}

static void expand(ls_graph *g, const ls_node *n, int rank)
{
    const ls_value x = {g, n->in[0]};
    const int64_t count = ls_shape_count(ls_value_shape(x)), length = ls_node_out_shape(g, n, 0)->dim[0];
    const int32_t before = g->n_nodes;
    ls_value piece;

    g->here = n->src;
    g->scope = n->scope;
    piece = cut(ls_reshape(x, LS_SHAPE(count)), rank * length, length);
    /* An only piece is the tensor itself, which whoever updates the piece may not write over. */
    if (ls_value_ok(piece) && ls_graph_storage(g, piece.id) == ls_graph_storage(g, x.id))
        piece = ls_copy(piece);
    if (!ls_value_ok(piece)) return;
    for (int32_t i = before; i < g->n_nodes; i++) {
        ls_graph_stand_for(g->nodes[i], n);
        if (g->nodes[i]->n_in > 0) g->nodes[i]->after = n->after; /* constants are made when they are read */
    }
    ls_graph_replace(g, n->out[0], piece.id);
}

void ls_pass_own_piece(ls_graph *g, ls_rank_query rank, const void *peers)
{
    const int32_t n_nodes = g->n_nodes;

    for (int32_t i = 0; i < n_nodes && g->err.status == LS_OK; i++) {
        ls_node *n = g->nodes[i];
        if (n->dead || n->op != &ls_op_own_piece) continue;
        expand(g, n, rank(peers, ((const ls_own_piece_attr *)n->attr)->group));
        n->dead = true;
    }
}
