/* pmix.h: the PMIx server of this machine, as the launcher of one machine of several uses it.
 *
 * MPI asks the server who its peers are.  The launcher makes one (lsi_pmix_prepare) before it forks its
 * ranks, and starts it (lsi_pmix_start) afterwards: a process that has already started the library could not
 * be a client of it.  So each rank gets what it needs to find the server through a pipe, which lsi_pmix_join
 * reads.
 *
 * Threads of the library only fill a box and ring a bell; the launcher's loop polls the bell, and
 * lsi_pmix_news empties the box.  All other functions are the loop's. */
#ifndef LS_LAUNCH_PMIX_H
#define LS_LAUNCH_PMIX_H

#include <pthread.h>
#include <stdint.h>

#include "launch/folder.h"
#include "launch/pmix_module.h"
#include "launch/rendezvous.h"

/* What a machine has handed in for the fence under way. */
typedef struct lsi_blob {
    uint8_t *data;
    size_t n;
    bool is_here;
} lsi_blob;

/* What the server has had to say since it was asked last. */
typedef struct lsi_pmix_news {
    lsi_blob fence; /* all ranks here have reached a fence: the caller's now */
    bool aborted;   /* a rank called MPI_Abort */
    int abort_rank, abort_status;
} lsi_pmix_news;

typedef struct lsi_pmix {
    const ls_pmix_module *module;
    bool runs;
    lsi_folder folder;  /* of PMIx and MPI */
    int (*env_pipe)[2]; /* by local rank: what it needs to find the server */
    int n_ranks;
    int bell;             /* an eventfd: the box has something */
    pthread_mutex_t lock; /* guards `box` */
    lsi_pmix_news box;
    uint8_t *fenced; /* the last fence's data of all; the library reads them until the next one */
} lsi_pmix;

/* Loads the module; LS_UNSUPPORTED with the remedy where it is not installed. */
ls_status lsi_pmix_load(const ls_pmix_module **out, ls_err *err) LS_MUST_CHECK;

/* Release in any case from here on, also after a failure.  Set `module` before lsi_pmix_prepare. */
void lsi_pmix_init(lsi_pmix *p);
ls_status lsi_pmix_prepare(lsi_pmix *p, int n_ranks, ls_err *err) LS_MUST_CHECK;
ls_status lsi_pmix_start(lsi_pmix *p, const lsi_party *party, ls_err *err) LS_MUST_CHECK;
void lsi_pmix_release(lsi_pmix *p);

/* In a rank: waits for the launcher's words and puts them into the environment; closes what is the
 * launcher's. */
ls_status lsi_pmix_join(lsi_pmix *p, int local_rank, ls_err *err) LS_MUST_CHECK;

void lsi_pmix_take_news(lsi_pmix *p, lsi_pmix_news *news);
/* Ends the fence with the data of all machines, in their order. */
void lsi_pmix_fence_done_take(lsi_pmix *p, uint8_t *data, size_t n);

/* Copies `n` bytes; LS_NOMEM. */
ls_status lsi_blob_fill(lsi_blob *b, const void *data, size_t n) LS_MUST_CHECK;

#endif
