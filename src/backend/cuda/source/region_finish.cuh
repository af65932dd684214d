/* region_finish.cuh: the second kernel of a region: what its blocks have left becomes sums, in the order of
 * their numbers.  FINISH threads a block. */

#define FINISH 256
#ifndef LSI_SHARED
#define LSI_SHARED __shared__
#endif

/* Sums first to first + 31 of `count`, one a lane; each warp adds the parts of every eighth block. */
template <class F> INLINE void add_parts(const float *parts, int blocks, int count, int first, F put)
{
    LSI_SHARED float room[FINISH / 32][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, e = first + lane;
    float sum = 0.0f;

    if (e < count) {
#pragma unroll 8
        for (int k = warp; k < blocks; k += FINISH / 32) sum += parts[(size_t)k * count + e];
    }
    room[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || e >= count) return;
    sum = 0.0f;
#pragma unroll
    for (int k = 0; k < FINISH / 32; k++) sum += room[k][lane];
    put(e, sum);
}

/* Elements first to first + FINISH - 1 of the J x I sums over samples of a[j] * b[i]. */
template <int J, int I, class F>
INLINE void outer_sums(const float *a, const float *b, int samples, int first, F put)
{
    const int e = first + threadIdx.x, j = e / I, i = e % I;
    float sum = 0.0f;

    if (e >= J * I) return;
#pragma unroll 16
    for (int n = 0; n < samples; n++) sum = fmaf(a[n * J + j], b[n * I + i], sum);
    put(e, sum);
}
