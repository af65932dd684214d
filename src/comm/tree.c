/* tree.c: the fixed binary tree by which leaves are summed.
 *
 * Over n leaves, a subtree of height h begins at a multiple of 2^h and covers 2^h leaves, or as many of them
 * as exist.  Its left child has height h - 1; a right child that would cover no leaf does not exist, and the
 * left one's sum passes through.  A subtree is thus known by the leaves it covers, and two neighbours are
 * siblings when together they cover what a subtree covers. */
#include "base/alloc.h"
#include "comm/comm_internal.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int lsi_tree_parts(int64_t n_leaves, int64_t first, int64_t end, lsi_node *out)
{
    int n = 0;

    while (first < end) {
        /* The highest subtree that begins here and does not reach beyond the range. */
        int64_t width = 1;
        while (first % (2 * width) == 0 && width < n_leaves && least(first + 2 * width, n_leaves) <= end)
            width *= 2;
        LS_BUG_IF(n == LSI_MAX_PARTS);
        out[n].first = first;
        out[n].end = first = least(first + width, n_leaves);
        n++;
    }
    return n;
}

bool lsi_tree_siblings(int64_t n_leaves, lsi_node a, lsi_node b)
{
    int64_t width = a.end - a.first;

    return a.end == b.first && (width & (width - 1)) == 0 && a.first % (2 * width) == 0 &&
           b.end == least(a.first + 2 * width, n_leaves);
}

/* Joins the two topmost subtrees as long as they are siblings, and notes how. */
static void join(lsi_sum_plan *p, int64_t n_leaves, lsi_node *stack, int *height)
{
    while (*height >= 2 && lsi_tree_siblings(n_leaves, stack[*height - 2], stack[*height - 1])) {
        lsi_move *last = &p->move[p->n_moves - 1];

        stack[*height - 2].end = stack[*height - 1].end;
        (*height)--;
        if (last->how != LSI_PUSH) {
            p->move[p->n_moves++].how = LSI_ADD;
        } else if (p->n_moves >= 2 && last[-1].how == LSI_PUSH) {
            last[-1].how = LSI_PUSH_PAIR;
            last[-1].b = last->a;
            p->n_moves--;
        } else {
            last->how = LSI_ADD_INPUT;
        }
    }
}

/* The largest number of blocks on the stack at once. */
static int depth_of(const lsi_sum_plan *p)
{
    int height = 0, most = 1;

    for (int i = 0; i < p->n_moves; i++) {
        if (p->move[i].how == LSI_PUSH || p->move[i].how == LSI_PUSH_PAIR) height++;
        if (p->move[i].how == LSI_ADD) height--;
        if (height > most) most = height;
    }
    return most;
}

ls_status lsi_sum_plan_make(lsi_sum_plan *plan, int64_t n_leaves, const lsi_node *in, int n_in, ls_err *err)
{
    int height = 0;

    *plan = (lsi_sum_plan){.n_in = n_in};
    plan->move = ls_alloc(LS_MEM_COMM, (size_t)n_in * 2 * sizeof *plan->move);
    plan->out = ls_alloc(LS_MEM_COMM, (size_t)n_in * sizeof *plan->out);
    if (plan->move == NULL || plan->out == NULL) {
        lsi_sum_plan_release(plan);
        return ls_fail(err, LS_NOMEM, "no memory for the plan of a sum");
    }
    for (int i = 0; i < n_in; i++) {
        plan->out[height++] = in[i];
        plan->move[plan->n_moves++] = (lsi_move){.how = LSI_PUSH, .a = i};
        join(plan, n_leaves, plan->out, &height);
    }
    plan->n_out = height;
    plan->depth = depth_of(plan);
    return LS_OK;
}

void lsi_sum_plan_release(lsi_sum_plan *plan)
{
    ls_free(plan->move);
    ls_free(plan->out);
    *plan = (lsi_sum_plan){0};
}
