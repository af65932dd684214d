/* pmix_module.h: what the launcher knows of the PMIx server, which is a module of its own.
 *
 * MPI asks a PMIx server on its machine who its peers are and where; mpirun and srun bring one along, and so
 * do we where machines are joined by hand.  The library is loaded only then: a program that is linked with it
 * would not start where it is missing.  The module uses nothing of Lockstep but this header. */
#ifndef LS_LAUNCH_PMIX_MODULE_H
#define LS_LAUNCH_PMIX_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define LS_PMIX_MODULE_VERSION 1
#define LS_PMIX_MODULE_SYMBOL  "ls_pmix_server"
#define LS_PMIX_ERROR_BYTES    512

/* All that MPI will know of the run.  Machines have the same number of ranks, in order. */
typedef struct ls_pmix_job {
    const char *name;  /* of the run: the same on all machines, unique */
    const char *hosts; /* names of the machines, separated by commas, all different */
    const char *host;  /* this machine's among them */
    int node, nodes, local_size;
    const char *folder; /* for files of the library and of MPI; exists, and is removed by the caller */
    void *ctx;
    /* All ranks here have reached a fence.  Called by a thread of the library, one fence at a time; the data
     * are valid during the call.  Answer with fence_done, when those of all machines are there. */
    void (*fence)(void *ctx, const char *data, size_t n);
    /* A rank called MPI_Abort.  Called by a thread of the library. */
    void (*aborted)(void *ctx, int rank, int status, const char *text);
} ls_pmix_job;

typedef struct ls_pmix_module {
    uint32_t version;
    const char *(*library)(void); /* name and version */
    /* 0, or -1 with a text in `error`.  One server per process. */
    int (*start)(const ls_pmix_job *job, char error[LS_PMIX_ERROR_BYTES]);
    /* Calls `add` with every "NAME=value" that a rank needs in its environment. */
    int (*environment)(int rank, void (*add)(void *ctx, const char *word), void *ctx,
                       char error[LS_PMIX_ERROR_BYTES]);
    /* Ends the fence that is under way, with the data of all machines in order; they must stay valid until
     * the next call of fence_done or stop. */
    void (*fence_done)(const char *data, size_t n);
    void (*stop)(void);
} ls_pmix_module;

#endif
