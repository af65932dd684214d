/* cuda.h: the backend for NVIDIA's GPUs.
 *
 * Planners (in the program, plain C) choose kernels, whose launchers are in the module lockstep-cuda.so
 * (api.h).  An op, or a variant of one, without a kernel of its own runs the reference kernel on the host,
 * with copies to and fro: slow, never missing. */
#ifndef LS_BACKEND_CUDA_CUDA_H
#define LS_BACKEND_CUDA_CUDA_H

#include "backend/backend.h"
#include "backend/cuda/api.h"
#include "backend/tune.h"

extern const ls_backend ls_backend_cuda;

/* Where reference kernels find their operands: one area of host memory, as large as the largest needs. */
typedef struct lsi_cuda_area {
    char *bytes;
    size_t size;
} lsi_cuda_area;

/* The kernels of a recording by the nodes of the graph that whoever comes after them comes after. */
typedef struct lsi_cuda_branches {
    void **nodes;
    size_t n, cap;
    size_t *first; /* per kernel, and one more */
    size_t n_kernels, cap_first;
    bool used, failed; /* an order other than that of the queue was asked for; memory or CUDA failed */
} lsi_cuda_branches;

typedef enum lsi_cuda_compiles {
    LSI_CUDA_UNTRIED,
    LSI_CUDA_COMPILES,
    LSI_CUDA_COMPILES_NOT
} lsi_cuda_compiles;

typedef struct lsi_cuda_device {
    ls_device base;
    const lsi_cuda_api *api;
    lsi_cuda_about about;
    int place, devices; /* its number, and how many there are */
    bool exactly;       /* all ranks of the machine have this one */
    char bus[32];       /* where it is in the machine; "": nobody knows */
    lsi_cuda_stream stream[LS_QUEUE_DEVICE_N];
    lsi_cuda_stream now;  /* the one that kernels are being put into */
    lsi_cuda_event began; /* recorded at began_ns */
    uint64_t began_ns;
    bool recording, refused; /* kernels are kept, not run; one of them cannot be kept */
    lsi_cuda_branches branches;
    lsi_cuda_copies_args pending; /* to be put into a queue at once, */
    ls_queue pending_in;          /* this one, */
    lsi_cuda_graph *due;          /* behind this, if there is one, */
    lsi_cuda_copies_args before;  /* which comes behind these */
    bool copies_alone;            /* LOCKSTEP_CUDA_COPIES: such copies are no part of a graph */
    int failed;                   /* what the device could not do, or 0 */
    lsi_cuda_compiles compiles;   /* the run-time compiler does (compiled.c) */
    lsi_tuner *tuner;
    lsi_cuda_area area;
    bool plain;         /* LOCKSTEP_CUDA_LAYOUT=plain: nothing is channels last, to see what that is worth */
    bool no_graph;      /* LOCKSTEP_CUDA_GRAPH=off: kernels of a step are started one by one */
    bool in_line;       /* LOCKSTEP_CUDA_BRANCHES=off: within a graph they run one after the other */
    bool no_clusters;   /* LOCKSTEP_CUDA_CLUSTERS=off: norms pass over memory once more, to see what that is
                           worth */
    bool clears_theirs; /* LOCKSTEP_CUDA_CLEARS=theirs: memory that libraries clear in a step is cleared by
                           the driver */
    bool not_early; /* LOCKSTEP_CUDA_EARLY=off: within a graph a kernel begins when all before it is over */
    bool
        no_norm_pool; /* LOCKSTEP_CUDA_NORM_POOL=off: norms and the max pools behind them are by themselves */
    bool checks; /* LOCKSTEP_CUDA_CHECK=1: every kernel is waited for, so that the one that fails is named */
} lsi_cuda_device;

/* -- loading (load.c) ------------------------------------------------------------------------------------ */

/* The module, or why there is none; the second call is free. */
ls_status lsi_cuda_load(const lsi_cuda_api **out, ls_err *err) LS_MUST_CHECK;

/* Device number `place`, counted round unless it is to be `exactly` that one, of those that
 * CUDA_VISIBLE_DEVICES leaves is the process's from now on (cuda.c).  LS_UNSUPPORTED: none can be used. */
ls_status lsi_cuda_take(lsi_cuda_device *d, int place, bool exactly, ls_err *err) LS_MUST_CHECK;

/* What an error means, with the GPU that it befell, and whether the driver has lost it (cuda.c). */
void lsi_cuda_explain(const lsi_cuda_device *d, int code, char *buf, size_t size);

/* -- memory (memory.c) ----------------------------------------------------------------------------------- */

extern const ls_buffers lsi_cuda_buffers;

/* -- queues (queues.c) ----------------------------------------------------------------------------------- */

extern const ls_queues lsi_cuda_queues;
extern const ls_links lsi_cuda_links; /* links.c */

int lsi_cuda_open_queues(lsi_cuda_device *d);
void lsi_cuda_close_queues(lsi_cuda_device *d);
/* Waits until all of them are empty. */
int lsi_cuda_drain(const lsi_cuda_device *d);

/* -- yardstick.c
 * ---------------------------------------------------------------------------------------------
 */

bool lsi_cuda_measure(ls_device *dev, ls_dtype type, ls_yardstick *out); /* see ls_backend */

/* -- planning -------------------------------------------------------------------------------------------- */

/* Plans one node of a kind of op.  LS_UNSUPPORTED without text: this variant has no kernel here, the
 * reference kernel takes it. */
typedef ls_status (*lsi_cuda_planner)(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                      ls_err *err);

/* One entry per op with kernels of its own (kernels.c: the only list). */
typedef struct lsi_cuda_entry {
    const ls_op *op;
    lsi_cuda_planner plan;
} lsi_cuda_entry;
extern const lsi_cuda_entry lsi_cuda_entries[]; /* ended by an entry with op NULL */

lsi_cuda_planner lsi_cuda_planner_of(const ls_op *op); /* NULL: none */

/* Layouts (layouts.c): see ls_backend. */
void lsi_cuda_layouts(const ls_device *dev, const ls_graph *g, const ls_node *n, const ls_layout *const *have,
                      const ls_layout **in, const ls_layout **out);

/* Regions (region.c): see ls_backend.  None without a run-time compiler, or with LOCKSTEP_CUDA_REGIONS=off.
 */
const ls_region_rule *lsi_cuda_regions(const ls_device *dev);

/* The reference kernel, on the host (host.c). */
ls_status lsi_cuda_plan_on_host(ls_device *dev, const ls_graph *g, const ls_node *n, ls_kernel *out,
                                ls_err *err) LS_MUST_CHECK;

#endif
