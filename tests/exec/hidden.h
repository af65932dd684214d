/* hidden.h: a device whose memory the host cannot see, for tests of everything that uses tensors.
 *
 * Every buffer lies at addresses that are reserved but may be neither read nor written: whoever follows one
 * dies at once.  The device itself works through a second mapping of the same memory; kernels are the
 * reference's. Memory begins as noise. */
#ifndef LS_TESTS_EXEC_HIDDEN_H
#define LS_TESTS_EXEC_HIDDEN_H

#include "backend/backend.h"

/* One device; the buffers of all of them together are at most HIDDEN_BUFFERS at a time. */
enum { HIDDEN_BUFFERS = 256 };
ls_device hidden_device(void);

/* From now on the n-th transfer (1: the next) fails, as does every one after it; 0: none does. */
void hidden_fail_at(int n);
/* The same for kernels: the n-th that runs says that it has failed. */
void hidden_fail_kernel_at(int n);
/* Buffers that are not freed. */
int hidden_live(void);

#endif
