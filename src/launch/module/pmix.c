/* pmix.c: a PMIx server for the ranks of one machine, as a module (pmix_module.h).
 *
 * MPI_Init of a rank reads from it who the ranks are and on which machines, hands in its own addresses, and
 * gets those of all in a fence.  The launcher carries the data of a fence between machines.  Other services
 * of PMIx (publishing, spawning, events between machines) are not offered: nothing here uses them. */
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/pmix_module.h"

/* The library knows one server per process, so the module has one state. */
static struct {
    ls_pmix_job job;
    pmix_nspace_t name;
    pthread_mutex_t
        lock; /* guards the two below: the library's thread sets them, the launcher's takes them */
    pmix_modex_cbfunc_t fence_call;
    void *fence_data;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- calls that end later -----------------------------------------------------------------------------------
 */

typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    pmix_status_t status;
} waiter;

#define WAITER                                                                                               \
    {                                                                                                        \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, PMIX_SUCCESS                             \
    }

static void on_done(pmix_status_t status, void *ctx)
{
    waiter *w = ctx;

    pthread_mutex_lock(&w->lock);
    w->status = status;
    w->is_done = true;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

/* The result of a call that returned `rc` and, when that is success, will call on_done. */
static pmix_status_t await(waiter *w, pmix_status_t rc)
{
    if (rc == PMIX_OPERATION_SUCCEEDED) return PMIX_SUCCESS;
    if (rc != PMIX_SUCCESS) return rc;
    pthread_mutex_lock(&w->lock);
    while (!w->is_done) pthread_cond_wait(&w->done, &w->lock);
    rc = w->status;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int failed(char error[LS_PMIX_ERROR_BYTES], const char *call, pmix_status_t rc)
{
    snprintf(error, LS_PMIX_ERROR_BYTES, "%s: %s", call, PMIx_Error_string(rc));
    return -1;
}

/* -- what ranks ask -----------------------------------------------------------------------------------------
 */

static pmix_status_t client_connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *ctx)
{
    (void)proc;
    (void)object;
    (void)done;
    (void)ctx;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t aborted(const pmix_proc_t *proc, void *object, int status, const char msg[],
                             pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t done, void *ctx)
{
    (void)object;
    (void)procs;
    (void)n;
    (void)done;
    (void)ctx;
    server.job.aborted(server.job.ctx, (int)proc->rank, status, msg != NULL ? msg : "");
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t fence(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[], size_t n_info,
                           char *data, size_t n, pmix_modex_cbfunc_t done, void *ctx)
{
    bool busy;

    (void)info;
    (void)n_info;
    /* Of all ranks only: that is what MPI_Init and MPI_Finalize do. */
    if (n_procs != 1 || procs[0].rank != PMIX_RANK_WILDCARD) return PMIX_ERR_NOT_SUPPORTED;
    pthread_mutex_lock(&server.lock);
    busy = server.fence_call != NULL;
    if (!busy) {
        server.fence_call = done;
        server.fence_data = ctx;
    }
    pthread_mutex_unlock(&server.lock);
    if (busy) return PMIX_ERR_NOT_SUPPORTED;
    server.job.fence(server.job.ctx, data, data != NULL ? n : 0);
    return PMIX_SUCCESS;
}

/* The fence of MPI_Init brings all data; what is not there does not exist. */
static pmix_status_t direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t n_info,
                                  pmix_modex_cbfunc_t done, void *ctx)
{
    (void)proc;
    (void)info;
    (void)n_info;
    done(PMIX_ERR_NOT_FOUND, NULL, 0, ctx, NULL, NULL);
    return PMIX_SUCCESS;
}

static pmix_status_t register_events(pmix_status_t *codes, size_t n, const pmix_info_t info[], size_t n_info,
                                     pmix_op_cbfunc_t done, void *ctx)
{
    (void)codes;
    (void)n;
    (void)info;
    (void)n_info;
    (void)done;
    (void)ctx;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t deregister_events(pmix_status_t *codes, size_t n, pmix_op_cbfunc_t done, void *ctx)
{
    return register_events(codes, n, NULL, 0, done, ctx);
}

static pmix_server_module_t callbacks = {
    .client_connected = client_connected,
    .client_finalized = client_connected,
    .abort = aborted,
    .fence_nb = fence,
    .direct_modex = direct_modex,
    .register_events = register_events,
    .deregister_events = deregister_events,
};

/* -- what the server knows ----------------------------------------------------------------------------------
 */

/* Texts that the description of a run is made of. */
typedef struct maps {
    char *hosts, *ranks; /* in the library's compressed form */
    char peers[16384];   /* ranks of this machine, separated by commas */
} maps;

/* Ranks first to end - 1, separated by commas; returns the length.  Ranges ("0-3") would be shorter, but
 * PMIx 4.2 counts the words of the list. */
static size_t list_ranks(char *buf, size_t size, int first, int end)
{
    size_t at = 0;

    for (int i = first; i < end && at + 16 < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%d", i > first ? "," : "", i);
    return at;
}

static pmix_status_t make_maps(maps *m)
{
    const ls_pmix_job *j = &server.job;
    const size_t size = (size_t)j->nodes * (size_t)j->local_size * 12 + 64;
    char *ranks = malloc(size);
    pmix_status_t rc = PMIX_ERR_NOMEM;
    size_t at = 0;

    if (ranks == NULL) return rc;
    for (int i = 0; i < j->nodes; i++) {
        if (i > 0) ranks[at++] = ';';
        at += list_ranks(ranks + at, size - at, i * j->local_size, (i + 1) * j->local_size);
    }
    list_ranks(m->peers, sizeof m->peers, j->node * j->local_size, (j->node + 1) * j->local_size);
    rc = PMIx_generate_regex(j->hosts, &m->hosts);
    if (rc == PMIX_SUCCESS) rc = PMIx_generate_ppn(ranks, &m->ranks);
    free(ranks);
    return rc;
}

static void put_u32(pmix_info_t *info, size_t *n, const char *key, uint32_t value)
{
    PMIX_INFO_LOAD(&info[*n], key, &value, PMIX_UINT32);
    ++*n;
}

static void put_text(pmix_info_t *info, size_t *n, const char *key, const char *value)
{
    PMIX_INFO_LOAD(&info[*n], key, value, PMIX_STRING);
    ++*n;
}

static void put_u16(pmix_info_t *info, size_t *n, const char *key, int value)
{
    const uint16_t small = (uint16_t)value;

    PMIX_INFO_LOAD(&info[*n], key, &small, PMIX_UINT16);
    ++*n;
}

/* One rank of the run: on which machine, and the how manieth there. */
static void put_rank(pmix_info_t *info, size_t *n, int rank)
{
    const ls_pmix_job *j = &server.job;
    const pmix_rank_t id = (pmix_rank_t)rank;
    pmix_data_array_t *about;
    pmix_info_t *of;
    size_t k = 0;

    PMIX_DATA_ARRAY_CREATE(about, 6, PMIX_INFO);
    of = about->array;
    PMIX_INFO_LOAD(&of[k], PMIX_RANK, &id, PMIX_PROC_RANK);
    k++;
    put_u32(of, &k, PMIX_APPNUM, 0);
    put_u16(of, &k, PMIX_LOCAL_RANK, rank % j->local_size);
    put_u16(of, &k, PMIX_NODE_RANK, rank % j->local_size);
    put_u32(of, &k, PMIX_NODEID, (uint32_t)(rank / j->local_size));
    put_u32(of, &k, PMIX_GLOBAL_RANK, (uint32_t)rank);
    PMIX_INFO_LOAD(&info[*n], PMIX_PROC_DATA, about, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_FREE(about);
    ++*n;
}

static pmix_status_t register_run(const maps *m)
{
    const ls_pmix_job *j = &server.job;
    const int size = j->nodes * j->local_size;
    const pmix_rank_t leader = (pmix_rank_t)(j->node * j->local_size);
    const size_t n_max = (size_t)size + 16;
    pmix_info_t *info;
    pmix_status_t rc;
    waiter w = WAITER;
    size_t n = 0;

    PMIX_INFO_CREATE(info, n_max);
    if (info == NULL) return PMIX_ERR_NOMEM;
    put_u32(info, &n, PMIX_UNIV_SIZE, (uint32_t)size);
    put_u32(info, &n, PMIX_JOB_SIZE, (uint32_t)size);
    put_u32(info, &n, PMIX_MAX_PROCS, (uint32_t)size);
    put_u32(info, &n, PMIX_JOB_NUM_APPS, 1);
    put_u32(info, &n, PMIX_LOCAL_SIZE, (uint32_t)j->local_size);
    put_u32(info, &n, PMIX_NODE_SIZE, (uint32_t)j->local_size);
    put_u32(info, &n, PMIX_NUM_NODES, (uint32_t)j->nodes);
    put_text(info, &n, PMIX_JOBID, j->name);
    put_text(info, &n, PMIX_TMPDIR, j->folder);
    put_text(info, &n, PMIX_NSDIR, j->folder);
    put_text(info, &n, PMIX_LOCAL_PEERS, m->peers);
    PMIX_INFO_LOAD(&info[n], PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
    n++;
    PMIX_INFO_LOAD(&info[n], PMIX_NODE_MAP, m->hosts, PMIX_REGEX);
    n++;
    PMIX_INFO_LOAD(&info[n], PMIX_PROC_MAP, m->ranks, PMIX_REGEX);
    n++;
    for (int rank = 0; rank < size; rank++) put_rank(info, &n, rank);
    rc = await(&w, PMIx_server_register_nspace(server.name, j->local_size, info, n, on_done, &w));
    PMIX_INFO_FREE(info, n_max);
    return rc;
}

static pmix_status_t register_ranks(void)
{
    pmix_status_t rc = PMIX_SUCCESS;

    for (int i = 0; i < server.job.local_size && rc == PMIX_SUCCESS; i++) {
        pmix_proc_t proc;
        waiter w = WAITER;
        PMIX_LOAD_PROCID(&proc, server.name, (pmix_rank_t)(server.job.node * server.job.local_size + i));
        rc = await(&w, PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, on_done, &w));
    }
    return rc;
}

/* -- the module ---------------------------------------------------------------------------------------------
 */

static pmix_status_t start_library(void)
{
    pmix_info_t *info;
    pmix_status_t rc;
    size_t n = 0;

    /* Data are handed to ranks by message: the store in shared memory leaves files behind when ranks are
     * killed. */
    setenv("PMIX_MCA_gds", "hash", 1);
    PMIX_INFO_CREATE(info, 3);
    put_text(info, &n, PMIX_SERVER_TMPDIR, server.job.folder);
    put_text(info, &n, PMIX_SYSTEM_TMPDIR, server.job.folder);
    put_text(info, &n, PMIX_HOSTNAME, server.job.host);
    rc = PMIx_server_init(&callbacks, info, n);
    PMIX_INFO_FREE(info, 3);
    return rc;
}

static int start(const ls_pmix_job *job, char error[LS_PMIX_ERROR_BYTES])
{
    maps m = {0};
    pmix_status_t rc;

    server.job = *job;
    PMIX_LOAD_NSPACE(server.name, job->name);
    rc = start_library();
    if (rc != PMIX_SUCCESS) return failed(error, "PMIx_server_init", rc);
    rc = make_maps(&m);
    if (rc == PMIX_SUCCESS) rc = register_run(&m);
    free(m.hosts);
    free(m.ranks);
    if (rc != PMIX_SUCCESS) return failed(error, "PMIx_server_register_nspace", rc);
    rc = register_ranks();
    return rc == PMIX_SUCCESS ? 0 : failed(error, "PMIx_server_register_client", rc);
}

static int environment(int rank, void (*add)(void *ctx, const char *word), void *ctx,
                       char error[LS_PMIX_ERROR_BYTES])
{
    char **words = NULL;
    pmix_proc_t proc;
    pmix_status_t rc;

    PMIX_LOAD_PROCID(&proc, server.name, (pmix_rank_t)rank);
    rc = PMIx_server_setup_fork(&proc, &words);
    if (rc != PMIX_SUCCESS) return failed(error, "PMIx_server_setup_fork", rc);
    for (char **w = words; w != NULL && *w != NULL; w++) {
        add(ctx, *w);
        free(*w);
    }
    free(words);
    return 0;
}

static void fence_done(const char *data, size_t n)
{
    pmix_modex_cbfunc_t call;
    void *ctx;

    pthread_mutex_lock(&server.lock);
    call = server.fence_call;
    ctx = server.fence_data;
    server.fence_call = NULL;
    pthread_mutex_unlock(&server.lock);
    if (call != NULL) call(PMIX_SUCCESS, data, n, ctx, NULL, NULL);
}

static void stop(void)
{
    (void)PMIx_server_finalize();
}

static const char *library(void)
{
    return PMIx_Get_version();
}

extern const ls_pmix_module ls_pmix_server;
const ls_pmix_module ls_pmix_server = {
    .version = LS_PMIX_MODULE_VERSION,
    .library = library,
    .start = start,
    .environment = environment,
    .fence_done = fence_done,
    .stop = stop,
};
