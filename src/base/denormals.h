/* denormals.h: numbers too small for a float's exponent (below 1.18e-38) count as zero.
 *
 * Processors compute with them in microcode, a hundred times as slowly, and an average that decays towards
 * zero, such as Adam's first moment where a gradient stays zero, ends at the smallest of them and stays there
 * for the rest of the run: 0.9 times it is rounded back to it.  The second unit of `mnist-keras` then took
 * three times as long a step (docs/decisions/0047-denormals.md). */
#ifndef LS_BASE_DENORMALS_H
#define LS_BASE_DENORMALS_H

/* From now on this thread, and every thread that it starts, takes such numbers for zero and gives zero
 * instead of them (x86-64: FTZ and DAZ; AArch64: FZ; elsewhere nothing changes).  Opening a device calls it;
 * the threads of a region have what its caller has (parallel.h). */
void ls_denormals_flush(void);

/* How this thread rounds and what it does with such numbers: to be given to another thread. */
unsigned long ls_denormals_mode(void);
void ls_denormals_take(unsigned long mode);

#endif
