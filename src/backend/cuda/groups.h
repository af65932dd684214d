/* groups.h: how many blocks sum a group, and what they need for it. */
#ifndef LS_BACKEND_CUDA_GROUPS_H
#define LS_BACKEND_CUDA_GROUPS_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/places.h"

/* The groups of a map: its channels, or with `per_sample` the channels of each sample. */
lsi_cuda_groups lsi_cuda_groups_of_map(lsi_cuda_map m, bool per_sample);
int64_t lsi_cuda_groups_count(const lsi_cuda_groups *g);
/* Elements of one group. */
int64_t lsi_cuda_groups_length(const lsi_cuda_groups *g);
/* Sets `splits` so that the device has work for all of its processors. */
void lsi_cuda_groups_split(const lsi_cuda_device *d, ls_dtype t, lsi_cuda_groups *g);
/* How clusters of blocks divide the groups, if they fit into shared memory with so many bytes kept of each
 * element; blocks is 0 if not. */
lsi_cuda_cluster lsi_cuda_cluster_of(const lsi_cuda_device *d, ls_dtype t, const lsi_cuda_groups *g,
                                     size_t kept);
/* Bytes of scratch for partial sums of n numbers per group; a multiple of 64. */
size_t lsi_cuda_groups_scratch(const lsi_cuda_groups *g, int n);
int64_t lsi_cuda_groups_tickets(const lsi_cuda_groups *g, ls_dtype t);

/* n words of device memory that are 0; *out is NULL when n is 0.  Freed by lsi_cuda_tickets_free. */
ls_status lsi_cuda_tickets(const lsi_cuda_device *d, int64_t n, unsigned **out, ls_err *err) LS_MUST_CHECK;
void lsi_cuda_tickets_free(const lsi_cuda_device *d, unsigned *tickets);

#endif
