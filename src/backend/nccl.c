/* nccl.c: calls of NVIDIA's collectives library. */
#include "backend/nccl.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/module.h"

/* Of its interface, as nccl.h of version 2 has it. */
typedef struct unique_id {
    char bytes[LS_LINK_ID];
} unique_id;
enum { SUCCESS = 0, REMOTE_ERROR = 6, IN_PROGRESS = 7 };
enum { FLOAT32 = 7, SUM = 0 };
enum { OLDEST = 21000, MAJOR = 2 };

#define LIBRARY "libnccl.so.2"

/* Filled once. */
static struct nccl {
    int (*get_version)(int *version);
    int (*get_id)(unique_id *out);
    int (*init)(lsi_nccl_comm *out, int ranks, unique_id id, int rank);
    int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, lsi_nccl_comm c, void *stream);
    int (*reduce_scatter)(const void *from, void *to, size_t n, int type, int op, lsi_nccl_comm c,
                          void *stream);
    int (*all_gather)(const void *from, void *to, size_t n, int type, lsi_nccl_comm c, void *stream);
    int (*broadcast)(const void *from, void *to, size_t n, int type, int root, lsi_nccl_comm c, void *stream);
    int (*async_error)(lsi_nccl_comm c, int *code);
    int (*abort)(lsi_nccl_comm c);
    int (*destroy)(lsi_nccl_comm c);
    const char *(*text)(int code);
    const char *(*last)(lsi_nccl_comm c); /* NULL before 2.13 */
    int version;                          /* 0: not usable */
    char why[200];
} nccl;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find_functions(void *library)
{
    const struct {
        const char *name;
        void *at; /* where the function's address goes */
    } functions[] = {{"ncclGetVersion", &nccl.get_version},
                     {"ncclGetUniqueId", &nccl.get_id},
                     {"ncclCommInitRank", &nccl.init},
                     {"ncclAllReduce", &nccl.all_reduce},
                     {"ncclReduceScatter", &nccl.reduce_scatter},
                     {"ncclAllGather", &nccl.all_gather},
                     {"ncclBroadcast", &nccl.broadcast},
                     {"ncclCommGetAsyncError", &nccl.async_error},
                     {"ncclCommAbort", &nccl.abort},
                     {"ncclCommDestroy", &nccl.destroy},
                     {"ncclGetErrorString", &nccl.text}};

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = ls_module_symbol(library, functions[i].name);
        if (symbol == NULL) {
            snprintf(nccl.why, sizeof nccl.why, LIBRARY " has no %s", functions[i].name);
            return false;
        }
        *(void **)functions[i].at = symbol;
    }
    *(void **)&nccl.last = ls_module_symbol(library, "ncclGetLastError");
    return true;
}

static void load(void)
{
    void *library;
    int version = 0, code;

    snprintf(nccl.why, sizeof nccl.why, LIBRARY " cannot be loaded (package libnccl2)");
    if (ls_module_load(&library, LIBRARY, NULL) != LS_OK || !find_functions(library)) return;
    code = nccl.get_version(&version);
    if (code != SUCCESS || version < OLDEST || version / 10000 != MAJOR)
        snprintf(nccl.why, sizeof nccl.why, LIBRARY " is of version %d.%d, and 2.10 or later of 2 is needed",
                 version / 10000, version / 100 % 100);
    else
        nccl.version = version;
}

ls_status lsi_nccl_load(int *version, ls_err *err)
{
    pthread_once(&once, load);
    *version = nccl.version;
    return nccl.version > 0 ? LS_OK : ls_fail(err, LS_UNSUPPORTED, "%s", nccl.why);
}

void lsi_nccl_text(int version, char *buf, size_t size)
{
    snprintf(buf, size, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

/* What the library says of itself, where it does. */
static ls_status failed(const char *what, int code, lsi_nccl_comm c, ls_err *err)
{
    const char *last = nccl.last != NULL ? nccl.last(c) : NULL;

    return ls_fail(err, code == REMOTE_ERROR ? LS_LOST : LS_DEVICE, "NCCL: %s: %s%s%s", what, nccl.text(code),
                   last != NULL && last[0] != '\0' ? ": " : "", last != NULL ? last : "");
}

ls_status lsi_nccl_name_group(char id[LS_LINK_ID], ls_err *err)
{
    unique_id made;
    const int code = nccl.get_id(&made);

    memcpy(id, made.bytes, sizeof made.bytes);
    return code == SUCCESS ? LS_OK : failed("naming a group", code, NULL, err);
}

ls_status lsi_nccl_open(lsi_nccl_comm *out, const char id[LS_LINK_ID], int rank, int ranks, ls_err *err)
{
    unique_id given;
    int code;

    memcpy(given.bytes, id, sizeof given.bytes);
    *out = NULL;
    code = nccl.init(out, ranks, given, rank);
    return code == SUCCESS ? LS_OK : failed("joining a group", code, NULL, err);
}

void lsi_nccl_close(lsi_nccl_comm c, bool broken)
{
    if (c != NULL) (void)(broken ? nccl.abort(c) : nccl.destroy(c));
}

ls_status lsi_nccl_run(lsi_nccl_comm c, int rank, ls_collective kind, float *vector, int64_t n, int root,
                       void *stream, ls_err *err)
{
    float *own = vector + rank * n;
    int code = SUCCESS;

    if (kind == LS_COLL_ALL_REDUCE)
        code = nccl.all_reduce(vector, vector, (size_t)n, FLOAT32, SUM, c, stream);
    else if (kind == LS_COLL_REDUCE_SCATTER)
        code = nccl.reduce_scatter(vector, own, (size_t)n, FLOAT32, SUM, c, stream);
    else if (kind == LS_COLL_ALL_GATHER)
        code = nccl.all_gather(own, vector, (size_t)n, FLOAT32, c, stream);
    else if (kind == LS_COLL_BROADCAST)
        code = nccl.broadcast(vector, vector, (size_t)n, FLOAT32, root, c, stream);
    return code == SUCCESS || code == IN_PROGRESS ? LS_OK : failed(ls_collective_name(kind), code, c, err);
}

ls_status lsi_nccl_check(lsi_nccl_comm c, ls_err *err)
{
    int now = SUCCESS;
    const int code = nccl.async_error(c, &now);

    if (code != SUCCESS) now = code;
    return now == SUCCESS || now == IN_PROGRESS ? LS_OK : failed("while it was under way", now, c, err);
}
