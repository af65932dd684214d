/* hidden.h: the device `far`, whose memory the host cannot see, with transfers and kernels that fail when a
 * test says so. */
#ifndef LS_TESTS_EXEC_HIDDEN_H
#define LS_TESTS_EXEC_HIDDEN_H

#include "backend/backend.h"

/* Close it with ls_device_close. */
ls_device *hidden_open(void);

/* From now on the n-th transfer (1: the next) fails, as does every one after it; 0: none does. */
void hidden_fail_at(int n);
/* The n-th kernel that runs says that it has failed. */
void hidden_fail_kernel_at(int n);
/* Buffers that are not freed. */
int hidden_live(void);

#endif
