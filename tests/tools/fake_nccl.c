/* fake_nccl.c: a libnccl.so.2 whose ranks are processes of one machine and whose memory is the host's, for
 * tests on machines without GPUs.
 *
 * A group is a file in /dev/shm: what ranks give, chunk by chunk, and a counter by which they wait for each
 * other.  Sums are made as a tree over ranks.  Ranks that do not call the same thing at the same time are
 * told, and the process ends: the real library would wait for ever.  FAKE_NCCL_VERSION is what it calls
 * itself; from collective number FAKE_NCCL_FAILS on, rank 1 reports an error and nothing goes on; with
 * FAKE_NCCL_DIES=1, of two ranks, its process ends when it is to join a group. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    SYSTEM_ERROR = 2,
    INVALID_USAGE = 5,
    REMOTE_ERROR = 6,
    FLOAT32 = 7,
    ALL_REDUCE = 1,
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST
};
enum { RANKS = 16, CHUNK = 1 << 14 }; /* floats */

typedef struct unique_id {
    char bytes[128];
} unique_id;

typedef struct shared {
    atomic_int arrived, aborted;
    atomic_uint round;
    struct {
        int kind;
        size_t n;
    } call[RANKS];
    float given[RANKS][CHUNK];
} shared;

typedef struct comm {
    shared *s;
    int rank, ranks;
    char name[128];
    atomic_int calls, failed; /* failed: an error of its own */
    struct comm *before;      /* in the list of those that were given up */
} comm;

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? atoi(text) : otherwise;
}

/* False: somebody has given up. */
static int meet(comm *c)
{
    const unsigned round = atomic_load(&c->s->round);
    const struct timespec moment = {0, 20000};

    if (atomic_fetch_add(&c->s->arrived, 1) + 1 == c->ranks) {
        atomic_store(&c->s->arrived, 0);
        atomic_fetch_add(&c->s->round, 1);
        return 1;
    }
    while (atomic_load(&c->s->round) == round) {
        if (atomic_load(&c->s->aborted)) return 0;
        nanosleep(&moment, NULL);
    }
    return 1;
}

static int begin(comm *c, int kind, size_t n)
{
    const int fails = setting("FAKE_NCCL_FAILS", 0);

    c->s->call[c->rank].kind = kind;
    c->s->call[c->rank].n = n;
    if (fails > 0 && c->rank == 1 && atomic_fetch_add(&c->calls, 1) + 1 >= fails) {
        atomic_store(&c->failed, SYSTEM_ERROR);
        while (!atomic_load(&c->s->aborted)) nanosleep(&(struct timespec){0, 20000}, NULL);
        return SYSTEM_ERROR;
    }
    if (!meet(c)) return REMOTE_ERROR;
    for (int r = 0; r < c->ranks; r++)
        if (c->s->call[r].kind != kind || c->s->call[r].n != n) {
            fprintf(stderr, "fake_nccl: rank %d calls %d of %zu, rank %d calls %d of %zu\n", c->rank, kind, n,
                    r, c->s->call[r].kind, c->s->call[r].n);
            abort();
        }
    return meet(c) ? SUCCESS : REMOTE_ERROR;
}

/* A stretch of everybody's: rank r has given chunk `from` of n floats, which `take` makes something of. */
static int turn(comm *c, const float *from, size_t n, void (*take)(comm *c, void *to, size_t n, int arg),
                void *to, int arg)
{
    if (from != NULL) memcpy(c->s->given[c->rank], from, n * sizeof *from);
    if (!meet(c)) return REMOTE_ERROR;
    take(c, to, n, arg);
    return meet(c) ? SUCCESS : REMOTE_ERROR;
}

/* Ranks 2i and 2i + 1 first, then pairs of pairs. */
static float tree(const comm *c, size_t i, int first, int width)
{
    if (width == 1) return c->s->given[first][i];
    if (first + width / 2 >= c->ranks) return tree(c, i, first, width / 2);
    return tree(c, i, first, width / 2) + tree(c, i, first + width / 2, width / 2);
}

static void take_sum(comm *c, void *to, size_t n, int arg)
{
    float *out = to;

    (void)arg;
    for (size_t i = 0; out != NULL && i < n; i++) out[i] = tree(c, i, 0, RANKS);
}

static void take_one(comm *c, void *to, size_t n, int rank)
{
    memcpy(to, c->s->given[rank], n * sizeof(float));
}

int ncclGetVersion(int *version);
int ncclGetUniqueId(unique_id *out);
int ncclCommInitRank(comm **out, int ranks, unique_id id, int rank);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, comm *c, void *stream);
int ncclReduceScatter(const void *from, void *to, size_t n, int type, int op, comm *c, void *stream);
int ncclAllGather(const void *from, void *to, size_t n, int type, comm *c, void *stream);
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, comm *c, void *stream);
int ncclCommGetAsyncError(comm *c, int *code);
int ncclCommAbort(comm *c);
int ncclCommDestroy(comm *c);
const char *ncclGetErrorString(int code);

int ncclGetVersion(int *version)
{
    *version = setting("FAKE_NCCL_VERSION", 22803);
    return SUCCESS;
}

int ncclGetUniqueId(unique_id *out)
{
    static int made;

    memset(out, 0, sizeof *out);
    snprintf(out->bytes, sizeof out->bytes, "/lockstep-fake-nccl-%ld-%d", (long)getpid(), made++);
    return SUCCESS;
}

int ncclCommInitRank(comm **out, int ranks, unique_id id, int rank)
{
    const int dies = setting("FAKE_NCCL_DIES", 0);
    comm *c = calloc(1, sizeof *c);
    int fd;

    if (dies && rank == 1) (void)raise(SIGKILL);
    fd = shm_open(id.bytes, O_RDWR | O_CREAT, 0600);
    if (c == NULL || fd < 0 || ranks > RANKS || ftruncate(fd, sizeof(shared)) != 0) return SYSTEM_ERROR;
    c->s = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->s == MAP_FAILED) return SYSTEM_ERROR;
    c->rank = rank;
    c->ranks = ranks;
    snprintf(c->name, sizeof c->name, "%s", id.bytes);
    if (dies) (void)shm_unlink(c->name); /* nobody will come */
    if (!meet(c)) return REMOTE_ERROR;
    if (rank == 0) (void)shm_unlink(c->name); /* all have it */
    *out = c;
    return SUCCESS;
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, comm *c, void *stream)
{
    int code = type == FLOAT32 && op == 0 && stream == NULL ? begin(c, ALL_REDUCE, n) : INVALID_USAGE;

    for (size_t at = 0; at < n && code == SUCCESS; at += CHUNK) {
        const size_t some = n - at < CHUNK ? n - at : CHUNK;
        code = turn(c, (const float *)from + at, some, take_sum, (float *)to + at, 0);
    }
    return code;
}

int ncclReduceScatter(const void *from, void *to, size_t n, int type, int op, comm *c, void *stream)
{
    int code = type == FLOAT32 && op == 0 && stream == NULL ? begin(c, REDUCE_SCATTER, n) : INVALID_USAGE;

    for (int r = 0; r < c->ranks; r++)
        for (size_t at = 0; at < n && code == SUCCESS; at += CHUNK) {
            const size_t some = n - at < CHUNK ? n - at : CHUNK;
            code = turn(c, (const float *)from + (size_t)r * n + at, some, take_sum,
                        r == c->rank ? (float *)to + at : NULL, 0);
        }
    return code;
}

int ncclAllGather(const void *from, void *to, size_t n, int type, comm *c, void *stream)
{
    int code = type == FLOAT32 && stream == NULL ? begin(c, ALL_GATHER, n) : INVALID_USAGE;

    for (size_t at = 0; at < n && code == SUCCESS; at += CHUNK) {
        const size_t some = n - at < CHUNK ? n - at : CHUNK;
        memcpy(c->s->given[c->rank], (const float *)from + at, some * sizeof(float));
        if (!meet(c)) return REMOTE_ERROR;
        for (int r = 0; r < c->ranks; r++) take_one(c, (float *)to + (size_t)r * n + at, some, r);
        if (!meet(c)) return REMOTE_ERROR;
    }
    return code;
}

int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, comm *c, void *stream)
{
    int code = type == FLOAT32 && stream == NULL ? begin(c, BROADCAST, n) : INVALID_USAGE;

    for (size_t at = 0; at < n && code == SUCCESS; at += CHUNK) {
        const size_t some = n - at < CHUNK ? n - at : CHUNK;
        code = turn(c, c->rank == root ? (const float *)from + at : NULL, some, take_one, (float *)to + at,
                    root);
    }
    return code;
}

int ncclCommGetAsyncError(comm *c, int *code)
{
    *code = atomic_load(&c->failed);
    return SUCCESS;
}

/* What others have given up they say themselves; the memory stays, for whoever is in a call. */
int ncclCommAbort(comm *c)
{
    static _Atomic(comm *) last;

    atomic_store(&c->s->aborted, 1);
    c->before = atomic_exchange(&last, c);
    return SUCCESS;
}

int ncclCommDestroy(comm *c)
{
    munmap(c->s, sizeof(shared));
    free(c);
    return SUCCESS;
}

const char *ncclGetErrorString(int code)
{
    return code == SYSTEM_ERROR   ? "unhandled system error"
           : code == REMOTE_ERROR ? "remote process exited"
                                  : "some error";
}
