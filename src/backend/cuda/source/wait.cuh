/* wait.cuh: what every kernel begins with.
 *
 * In a graph a kernel may be started while those that it comes after still run (module/early.c).  It then
 * stops here until they have ended and all that they wrote can be seen; where it was started behind them, it
 * does not stop at all.  Before this line a kernel must neither read nor write memory that others can see,
 * and every block must come to it: whoever comes after a kernel also comes after all that this one waited
 * for.
 *
 * The files of this folder are text of the program as well: they include nothing. */
#ifndef LSI_CUDA_WAIT
#define LSI_CUDA_WAIT

static __device__ __forceinline__ void lsi_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
