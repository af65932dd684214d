/* random_normal: normal numbers with mean 0 and standard deviation p. */
#include "ops/random_rules.h"

static double draw(const ls_rng_key *key, const ls_random_attr *a, uint32_t sample, uint64_t e)
{
    uint64_t pair = e / 2 * 2;

    return a->p * ls_rng_normal(ls_rng_word(key, a->stream, sample, pair),
                                ls_rng_word(key, a->stream, sample, pair + 1), (int)(e % 2));
}

static void ref(const ls_ref_call *c)
{
    lsi_ref_random(c, draw);
}

const ls_op ls_op_random_normal = {
    .name = "random_normal",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .attr_size = sizeof(ls_random_attr),
    .flags = LS_OP_RANDOM | LS_OP_NO_GRAD,
    .infer = lsi_infer_random,
    .ref = ref,
    .attr_text = lsi_random_attr_text,
};

ls_value ls_random_normal(ls_value key, ls_shape shape, double stddev, const char *stream)
{
    ls_random_attr a = {.p = stddev, .stream = ls_rng_stream(stream), .shape = shape};

    return ls_graph_add(key.g, &ls_op_random_normal, 1, &key, &a);
}
