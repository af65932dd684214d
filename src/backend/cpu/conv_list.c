/* conv_list.c: the only list of convolution implementations, best guess first. */
#include "backend/cpu/conv_list.h"

const lsi_conv_impl *const lsi_conv_impls[] = {
    &lsi_conv_b16_first,          /* bf16: few plain channels in */
    &lsi_conv_b16,                /* bf16 on blocked maps, forward and gradient of the input */
    &lsi_conv_b16_dw,             /* the same, gradient of the weights */
    &lsi_conv_b16_dw_few,         /* likewise, from few plain channels */
    &lsi_conv_first_avx512,       /* few plain channels in, many blocked channels out */
    &lsi_conv_last_avx512,        /* the other way round, stride 1 */
    &lsi_conv_plain_small_avx512, /* few plain channels on both sides */
    &lsi_conv_plain_rows_avx2,    /* the same, stride 1, where rows fill vectors */
    &lsi_conv_wino,               /* 3x3 stride 1 */
    &lsi_conv_s2d,                /* 3x3 to 6x6 stride 2 */
    &lsi_conv_onednn_wino,        /* 3x3 stride 1 */
    &lsi_conv_onednn,             /* nearly everything */
    &lsi_conv_direct_c16,         /* blocked maps, everything without groups */
    &lsi_conv_first_avx2,         /* like their namesakes */
    &lsi_conv_last_avx2,
    &lsi_conv_plain_small_avx2,
    &lsi_conv_naive, /* everything */
    NULL,
};
