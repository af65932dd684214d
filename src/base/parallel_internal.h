/* parallel_internal.h: what the two implementations of parallel.h share. */
#ifndef LS_BASE_PARALLEL_INTERNAL_H
#define LS_BASE_PARALLEL_INTERNAL_H

#include "base/parallel.h"

/* Runs all threads of a region one after another on the caller: for nested regions and when threads cannot be
 * had. */
void lsi_parallel_run_serially(int n_threads, ls_parallel_fn fn, void *arg);
/* True on a thread that is inside lsi_parallel_run_serially, where a barrier could never be passed. */
int lsi_parallel_is_serial(void);

/* What the runtime underneath does about ls_parallel_set_wait_policy. */
void lsi_parallel_apply_wait_policy(int oversubscribed);
/* The largest region the runtime underneath will run concurrently. */
int lsi_parallel_thread_limit(void);

#endif
