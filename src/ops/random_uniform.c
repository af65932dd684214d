/* random_uniform: uniform numbers in [0, 1), multiples of 2^-24. */
#include "ops/random_rules.h"

static double draw(const ls_rng_key *key, const ls_random_attr *a, uint32_t sample, uint64_t e)
{
    return (double)ls_rng_uniform(ls_rng_word(key, a->stream, sample, e));
}

static void ref(const ls_ref_call *c)
{
    lsi_ref_random(c, draw);
}

const ls_op ls_op_random_uniform = {
    .name = "random_uniform",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_random_attr),
    .flags = LS_OP_RANDOM | LS_OP_NO_GRAD,
    .infer = lsi_infer_random,
    .ref = ref,
    .attr_text = lsi_random_attr_text,
};

ls_value ls_random_uniform(ls_value key, ls_shape shape, const char *stream)
{
    ls_random_attr a = {.stream = ls_rng_stream(stream), .shape = shape};

    return ls_graph_add(key.g, &ls_op_random_uniform, 1, &key, &a);
}
