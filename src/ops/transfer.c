/* to_host and to_device: the same tensor in memory of the host's, or of the device's again.
 *
 * passes/staging.c puts them around what the host itself does with values of a device that has queues.  They
 * run on its copy queue, and their kernels are the only ones that see memory of both.  Elsewhere they copy.
 */
#include <string.h>

#include "ops/ops.h"
#include "ops/shape_rules.h"

static void ref(const ls_ref_call *c)
{
    memcpy(c->out[0].d, c->in[0].d, (size_t)c->in[0].count * sizeof(double));
}

/* Away as soon as the value is there: whoever waits for it is another rank. */
const ls_op ls_op_to_host = {
    .name = "to_host",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_NO_GRAD | LS_OP_EAGER,
    .queue = LS_QUEUE_COPY,
    .infer = lsi_infer_same,
    .ref = ref,
};

const ls_op ls_op_to_device = {
    .name = "to_device",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .flags = LS_OP_NO_GRAD | LS_OP_MOVE,
    .queue = LS_QUEUE_COPY,
    .infer = lsi_infer_same,
    .ref = ref,
};
