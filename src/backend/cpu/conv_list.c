/* conv_list.c: the only list of convolution implementations, best guess first. */
#include "backend/cpu/conv_list.h"

const lsi_conv_impl *const lsi_conv_impls[] = {
    &lsi_conv_first_avx512, &lsi_conv_last_avx512, &lsi_conv_onednn_wino,
    &lsi_conv_onednn,       &lsi_conv_direct_c16,  &lsi_conv_first_avx2,
    &lsi_conv_last_avx2,    &lsi_conv_naive,       NULL,
};
