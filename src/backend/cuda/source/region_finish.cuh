/* region_finish.cuh: the second kernel of a region: what its blocks have left becomes sums, in the order of
 * their numbers.  It takes a few microseconds, of which most are waiting for memory: so a thread has few
 * terms, and asks for all of them at once.  Before this file stands FINISH, the threads of a block. */

#ifndef LSI_SHARED
#define LSI_SHARED __shared__
#endif

/* Sums first to first + 31 of `count`, one a lane, of n terms: each warp adds those of its number and every
 * FINISH / 32 further.  add(sum, k, e) is the sum with term k. */
template <class A, class F> INLINE void add_terms(int n, int count, int first, A add, F put)
{
    LSI_SHARED float room[FINISH / 32][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, e = first + lane;
    float sum = 0.0f;

    if (e < count) {
#pragma unroll 8
        for (int k = warp; k < n; k += FINISH / 32) sum = add(sum, k, e);
    }
    room[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || e >= count) return;
    sum = 0.0f;
#pragma unroll
    for (int k = 0; k < FINISH / 32; k++) sum += room[k][lane];
    put(e, sum);
}

/* Of what blocks have left. */
template <class F> INLINE void add_parts(const float *parts, int blocks, int count, int first, F put)
{
    add_terms(
        blocks, count, first, [&](float sum, int k, int e) { return sum + parts[(size_t)k * count + e]; },
        put);
}

/* Of the J x I sums over samples of a[j] * b[i]. */
template <int J, int I, class F>
INLINE void outer_sums(const float *a, const float *b, int samples, int first, F put)
{
    add_terms(
        samples, J * I, first,
        [&](float sum, int n, int e) { return fmaf(a[n * J + e / I], b[n * I + e % I], sum); }, put);
}
