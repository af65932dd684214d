/* conv_list.h: what each implementation file offers to conv_list.c; nobody else names them. */
#ifndef LS_BACKEND_CPU_CONV_LIST_H
#define LS_BACKEND_CPU_CONV_LIST_H

#include "backend/cpu/conv.h"

extern const lsi_conv_impl lsi_conv_b16, lsi_conv_b16_dw;           /* conv_b16.c, conv_b16_dw.c */
extern const lsi_conv_impl lsi_conv_b16_dw_few, lsi_conv_b16_first; /* conv_b16_dw_few.c, conv_b16_first.c */
extern const lsi_conv_impl lsi_conv_first_avx512, lsi_conv_last_avx512; /* conv_few.c */
extern const lsi_conv_impl lsi_conv_first_avx2, lsi_conv_last_avx2;
extern const lsi_conv_impl lsi_conv_plain_small_avx512, lsi_conv_plain_small_avx2; /* conv_lanes.c */
extern const lsi_conv_impl lsi_conv_plain_rows_avx2;
extern const lsi_conv_impl lsi_conv_onednn, lsi_conv_onednn_wino; /* conv_onednn.c */
extern const lsi_conv_impl lsi_conv_wino, lsi_conv_s2d;           /* conv_wino.c */
extern const lsi_conv_impl lsi_conv_direct_c16;                   /* conv_direct.c */
extern const lsi_conv_impl lsi_conv_naive;                        /* conv_naive.c */

#endif
