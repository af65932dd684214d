/* groups.h: a tensor seen as groups of elements that are summed, or that share statistics. */
#ifndef LS_BACKEND_CUDA_LAUNCH_GROUPS_H
#define LS_BACKEND_CUDA_LAUNCH_GROUPS_H

#include "lockstep/tensor.h"

/* Two forms.  Lines: element (o, g, i) of (outer, groups, inner) lies at (o * groups + g) * inner + i and is
 * of group g.  Columns: element (b, r, c) of (outer, inner, groups) lies at (b * inner + r) * groups + c and
 * is of group b * groups + c.  So `outer` repeats a group in the one form and makes new ones in the other. */
typedef struct lsi_cuda_groups {
    bool columns;
    int64_t outer, groups, inner;
    int splits;        /* blocks that sum one group together */
    float *partial;    /* lsi_cuda_groups_scratch bytes of scratch; NULL with one split */
    unsigned *tickets; /* lsi_cuda_groups_tickets of them, 0 between launches; NULL with one split */
} lsi_cuda_groups;

/* Groups of columns that clusters of blocks read once (module/cluster.cuh): so many blocks, each with `span`
 * columns and its share of the rows in shared memory; 0: they do not fit. */
typedef struct lsi_cuda_cluster {
    int blocks, span;
} lsi_cuda_cluster;

enum { LSI_CLUSTER_THREADS = 512, LSI_CLUSTER_WIDE = 64, LSI_CLUSTER_NARROW = 16 }; /* the last two: spans */

/* Threads of a block, and how many columns a block takes with accesses of 16 bytes and of one element. */
enum { LSI_GROUP_THREADS = 256, LSI_SPAN_WIDE = 64, LSI_SPAN_NARROW = 32 };

#endif
