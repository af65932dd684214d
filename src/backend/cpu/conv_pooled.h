/* conv_pooled.h: the kernel of conv2d_dw_pooled, for stride 1 without dilation or groups. */
#ifndef LS_BACKEND_CPU_CONV_POOLED_H
#define LS_BACKEND_CPU_CONV_POOLED_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LSI_POOLED_TAPS = 8, /* the most taps along a filter's row or column */
    LSI_POOLED_SLACK = 8 /* floats that are read (and not used) behind the last row of `x` */
};

/* One plane of x, padded so that every tap lies inside, and what lies on it. */
typedef struct lsi_pooled_plane {
    const float *x;       /* rows `pitch` apart, with LSI_POOLED_SLACK floats behind the last */
    const float *dy;      /* (ph, pw) */
    const uint8_t *index; /* (ph, pw): position in the window */
    int64_t pitch, ph, pw;
    int64_t origin;         /* of the first window in x; negative with padding */
    int64_t step_y, step_x; /* from a window to the next below or beside it, in floats */
    const int64_t *offset;  /* from a window's origin to each position in it, in floats */
} lsi_pooled_plane;

/* Adds the plane's share to sums[ky][lane]: lanes 0..kw-1 are the taps of filter row ky < kh, the others
 * hold nothing of use. */
void lsi_pooled_add_avx2(const lsi_pooled_plane *p, int64_t kh, float (*sums)[LSI_POOLED_TAPS]);

#endif
