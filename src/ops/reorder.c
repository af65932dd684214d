/* reorder: the same tensor in another memory layout.  The layout pass inserts it after differentiation, so it
 * has no gradient.  Reference kernels see logical elements, which do not move: it is whoever runs them that
 * finds and stores elements by the layouts (backend/ref/ref.c), from any to any. */
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"

static ls_status infer(ls_infer *c, ls_err *err)
{
    const ls_reorder_attr *a = c->attr;
    const ls_layout *const end[2] = {a->from, a->to};

    for (int i = 0; i < 2; i++)
        if (!ls_layout_allowed(end[i], c->in_dtype[0], c->in[0]))
            return ls_fail(err, LS_INVALID, "a tensor of this shape and type %s cannot be stored as %s",
                           ls_dtype_name(c->in_dtype[0]), end[i]->name);
    c->out[0] = c->in[0];
    return LS_OK;
}

static void ref(const ls_ref_call *c)
{
    memcpy(c->out[0].d, c->in[0].d, (size_t)c->in[0].count * sizeof(double));
}

static void attr_text(const void *attr, char *buf, size_t n)
{
    const ls_reorder_attr *a = attr;

    snprintf(buf, n, "%s to %s", a->from->name, a->to->name);
}

const ls_op ls_op_reorder = {
    .name = "reorder",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_reorder_attr),
    .flags = LS_OP_MOVE,
    .infer = infer,
    .ref = ref,
    .attr_text = attr_text,
};
