/* comm_internal.h: what the files of comm share.
 *
 * Ranks of one machine find one another in a region of shared memory, the heap.  Its first bytes are
 * lsi_region: a slot per rank and the abort record.  Behind it windows are made as exchanges are; all ranks
 * make them in the same order and so at the same offsets.  "local index" is a rank's number among the ranks
 * of its machine. */
#ifndef LS_COMM_INTERNAL_H
#define LS_COMM_INTERNAL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/lines.h"
#include "comm/stock.h"
#include "comm/transport.h"

#define LSI_LINE       64
#define LSI_MAIL_BYTES ((size_t)64 * 1024) /* what a rank can say in one round of the control plane */
#define LSI_WHAT_WORDS (LS_COMM_WHAT_MAX / 8)

/* One rank's place in the region.  The first line is the control plane's, the others are for watchers. */
typedef struct lsi_slot {
    alignas(
        LSI_LINE) _Atomic uint64_t posted; /* rounds this rank has entered; orders its ticket and its mail */
    uint64_t ticket[2];                    /* which operation, by parity of the round */
    alignas(LSI_LINE) _Atomic int32_t pid;
    _Atomic int32_t left; /* orders everything this rank did before it closed */
    _Atomic int32_t rank; /* in the whole run */
    _Atomic int64_t step; /* this and the following are for watchers; nothing is ordered by them */
    _Atomic uint64_t beats;
    _Atomic uint64_t
        waited; /* beats + 1 when it was last seen waiting: it waits still unless it has moved on */
    _Atomic int32_t doing; /* ls_comm_doing */
    _Atomic uint64_t
        what[LSI_WHAT_WORDS]; /* words, so that a reader and a writer may come at the same time */
} lsi_slot;

enum { LSI_RUNNING, LSI_ABORT_BEING_WRITTEN, LSI_ABORTED };

typedef struct lsi_region {
    uint64_t magic;
    uint64_t nonce; /* tells this heap from all others */
    int32_t size;
    alignas(LSI_LINE) _Atomic int32_t abort_state; /* orders the next two */
    int32_t abort_rank;                            /* -1: nobody is gone, but the run as a whole ends */
    int32_t abort_status;                          /* what waits then end with */
    char abort_why[512];
    _Atomic int64_t stall_us, stall_limit_us; /* of ls_comm_set_stall, for watchers */
    lsi_slot slot[];                          /* then two boxes of mail per rank */
} lsi_region;

/* A stretch of the heap as this process sees it.  Ranks that are threads share it: ThreadSanitizer would not
 * notice that two addresses are the same memory. */
typedef struct lsi_mapping {
    struct lsi_mapping *next;
    size_t offset, bytes;
    void *at;
    int users;
} lsi_mapping;

struct ls_comm_heap {
    int fd, size;
    lsi_region *region;
    size_t region_bytes;
    pthread_mutex_t lock; /* guards mappings and users */
    lsi_mapping *mappings;
    int users;
};

/* What a communicator over several machines has besides.  Ranks of a machine are known by their local index,
 * in ascending order of ranks; the one with index 0, the leader, speaks for its machine in the control plane.
 */
typedef struct lsi_remote {
    int *host_of;               /* by rank */
    int *local_of;              /* by rank */
    int *host_size;             /* by host */
    int **ranks_of;             /* by host and local index */
    int *in_turns;              /* ranks: of every host the first, of every host the second, ... */
    char *staging;              /* in the heap: a block per host, what its leader said in this round */
    ls_transport_request *wait; /* the leader's transfers of a round */
    int next_tag;               /* for exchanges */
    lsi_lines *lines;           /* NULL: slices go through the transport */
    lsi_stock blocks;           /* for slices in hand */
    ls_exchange *running;       /* exchanges under way, in the order of their starts */
    uint64_t starts;            /* of exchanges, so far */
} lsi_remote;

struct ls_comm {
    const char *kind;
    int rank, size, local_rank, local_size, host, hosts;
    int shard_group; /* ranks of LS_GROUP_SHARD; 0: those of the machine */
    ls_comm_heap *heap;
    uint64_t round; /* of the control plane on this machine */
    size_t cursor;  /* where the next window begins */
    int *pidfd;     /* by local index: readable when that process is gone; -1 unknown; NULL for threads */
    double stall_seconds;
    uint64_t exposed_ns, adding_ns;
    uint64_t sent_bytes;           /* to other machines, by exchanges */
    bool disagreed;                /* the ranks are no longer in step with each other */
    const ls_transport *transport; /* of kind mpi */
    ls_transport_place place;
    lsi_remote *remote; /* NULL: all ranks are on this machine */
};

/* -- comm.c ------------------------------------------------------------------------------------------------
 */

/* A rank on this machine's heap; takes over one use of the heap, also when it fails. */
ls_status lsi_comm_make_take(ls_comm **out, const char *kind, ls_comm_heap *heap, int local,
                             ls_err *err) LS_MUST_CHECK;
/* The next n windows of the heap, the same for all ranks of the machine, of which this rank maps number i;
 * lsi_heap_unmap ends it. */
ls_status lsi_window_map(ls_comm *c, size_t bytes, int n, int i, size_t *offset, void **out,
                         ls_err *err) LS_MUST_CHECK;
/* From now on ends of the processes of this machine's ranks are noticed; all must have met. */
ls_status lsi_comm_watch_peers(ls_comm *c, ls_err *err) LS_MUST_CHECK;

/* -- heap.c ------------------------------------------------------------------------------------------------
 */

/* The heap behind a descriptor, which is duplicated. */
ls_status lsi_heap_attach(ls_comm_heap **out, int fd, int size, ls_err *err) LS_MUST_CHECK;
void lsi_heap_keep(ls_comm_heap *heap); /* one more user; ls_comm_heap_destroy takes one away */
static inline char *lsi_mail(const ls_comm_heap *heap, int local, uint64_t round)
{
    char *boxes = (char *)(heap->region->slot + heap->size);

    return boxes + ((size_t)local * 2 + (size_t)(round & 1)) * LSI_MAIL_BYTES;
}
/* Makes room at `offset`, maps it and touches every page. */
ls_status lsi_heap_map(ls_comm_heap *heap, size_t offset, size_t bytes, void **out,
                       ls_err *err) LS_MUST_CHECK;
void lsi_heap_unmap(ls_comm_heap *heap, void *at); /* accepts NULL */
/* Gives the memory of a window back to the system; nobody may use it any more. */
void lsi_heap_discard(ls_comm_heap *heap, size_t offset, size_t bytes);

/* -- wait.c ------------------------------------------------------------------------------------------------
 */

/* Says which operation this rank is in. */
void lsi_note(ls_comm *c, const char *what);

#define LSI_REST_NS 50000 /* how long a wait sleeps between two looks */
/* A wait under way; start with {.what = ...}. */
typedef struct lsi_wait {
    const char *what;
    uint64_t begun_ns, looked_ns;
    int turns;
    bool reported;
    /* Of what comes from other machines; may be NULL. */
    void (*awaited)(void *of, bool *ranks); /* marks the ranks that are waited for */
    void (*rest)(void *of);                 /* sleeps for a moment, or until something has come */
    void *of;
} lsi_wait;
/* Whether the rank with this local index has not arrived yet. */
typedef bool (*lsi_missing)(const void *arg, int local);
/* What to do each time a wait finds nothing: rests a little, and fails when a rank is gone.  After that rest
 * the caller looks again, and may do so at once after LS_OK only. */
ls_status lsi_wait_turn(ls_comm *c, lsi_wait *w, lsi_missing missing, const void *arg, ls_err *err);
/* What was waited for has come: this rank is at work again. */
void lsi_wait_end(ls_comm *c, const lsi_wait *w);
/* Whether somebody has given up. */
static inline bool lsi_aborted(const ls_comm *c)
{
    return atomic_load_explicit(&c->heap->region->abort_state, memory_order_relaxed) != LSI_RUNNING;
}
ls_status lsi_lost(const ls_comm *c, const char *what, ls_err *err);

/* -- control.c
 * ----------------------------------------------------------------------------------------------- */

/* The number that stands for an operation; ranks compare it in every round. */
uint64_t lsi_ticket(const char *operation, size_t bytes, const char *what);
/* What a rank does while it waits for a round: `work` does a piece of something useful and returns whether
 * there was any. */
typedef struct lsi_meanwhile {
    bool (*work)(void *ctx);
    void *ctx;
} lsi_meanwhile;
/* A piece of that, or lsi_wait_turn where there is none.  `m` may be NULL: there never is. */
ls_status lsi_meanwhile_turn(ls_comm *c, lsi_wait *w, lsi_missing missing, const void *arg,
                             const lsi_meanwhile *m, ls_err *err) LS_MUST_CHECK;
/* A round among the ranks of this machine.  Mail lies in the boxes of round c->round + 1, which is c->round
 * when this returns. */
ls_status lsi_local_round(ls_comm *c, uint64_t ticket, const char *what, const lsi_meanwhile *m,
                          ls_err *err) LS_MUST_CHECK;
/* No rank of the run goes on before all have come. */
ls_status lsi_barrier(ls_comm *c, const char *what, const lsi_meanwhile *m, ls_err *err) LS_MUST_CHECK;
/* Collective: all ranks return LS_OK, or none does.  `st` is how this rank fared; `err` has its text. */
ls_status lsi_all_well(ls_comm *c, ls_status st, const char *what, ls_err *err) LS_MUST_CHECK;

/* -- remote.c: the control plane between machines
 * --------------------------------------------------------------
 */

enum { LSI_FIRST_EXCHANGE_TAG = 1 };
#define LSI_REMOTE_BYTES ((size_t)16 * 1024) /* what a rank can say in one round over several machines */

ls_status lsi_remote_create(ls_comm *c, const int *host_of, ls_err *err) LS_MUST_CHECK;
void lsi_remote_destroy(ls_comm *c); /* accepts that there is none */
/* After lsi_local_round: carries the mail of this round, `piece` bytes of every rank (root -1) or of one, to
 * all machines. */
ls_status lsi_remote_round(ls_comm *c, int root, size_t piece, uint64_t ticket, const char *what,
                           const lsi_meanwhile *m, ls_err *err) LS_MUST_CHECK;
/* Where the mail of a rank then lies. */
const char *lsi_remote_mail(const ls_comm *c, int rank, int root, size_t piece);

/* -- comm.c ------------------------------------------------------------------------------------------------
 */

/* Additions have gone on since `begun_ns`: that time was not spent waiting. */
void lsi_book_adding(ls_comm *c, uint64_t begun_ns);

/* -- tree.c: which sums, in which order
 * ------------------------------------------------------------------------
 */

/* A subtree: the leaves [first, end). */
typedef struct lsi_node {
    int64_t first, end;
} lsi_node;

/* The largest subtrees of the tree over n_leaves that make up [first, end); returns how many, at most
 * LSI_MAX_PARTS. */
#define LSI_MAX_PARTS 128
int lsi_tree_parts(int64_t n_leaves, int64_t first, int64_t end, lsi_node *out);
/* Whether `a` and `b` are the left and right child of one subtree. */
bool lsi_tree_siblings(int64_t n_leaves, lsi_node a, lsi_node b);

/* One move of a sum over several inputs, on a stack of blocks. */
typedef struct lsi_move {
    enum {
        LSI_PUSH,      /* push weight[a] * in[a] */
        LSI_PUSH_PAIR, /* push weight[a] * in[a] + weight[b] * in[b] */
        LSI_ADD_INPUT, /* top += weight[a] * in[a] */
        LSI_ADD        /* pop, and add to the new top */
    } how;
    int a, b;
} lsi_move;

/* How to add inputs that are subtrees, in ascending order.  What is left on the stack in the end are the
 * outputs: the largest subtrees that the inputs make up. */
typedef struct lsi_sum_plan {
    int n_in, n_moves, depth, n_out;
    lsi_move *move;
    lsi_node *out;
} lsi_sum_plan;

ls_status lsi_sum_plan_make(lsi_sum_plan *plan, int64_t n_leaves, const lsi_node *in, int n_in,
                            ls_err *err) LS_MUST_CHECK;
void lsi_sum_plan_release(lsi_sum_plan *plan);

/* -- sum.c: the additions
 * --------------------------------------------------------------------------------------
 */

#define LSI_SUM_BLOCK 2048 /* floats: a few blocks fit the first cache */

typedef struct lsi_sum_loops {
    void (*scale)(float *out, const float *a, float w, int64_t n);
    void (*pair)(float *out, const float *a, float wa, const float *b, float wb, int64_t n);
    void (*add_scaled)(float *to, const float *a, float w, int64_t n);
    void (*add)(float *to, const float *a, int64_t n);
    /* The same as the first two, for what is written last: */
    void (*scale_out)(float *out, const float *a, float w, int64_t n);
    void (*pair_out)(float *out, const float *a, float wa, const float *b, float wb, int64_t n);
} lsi_sum_loops;
/* `past_cache`: results are too large to stay in a cache, and are written around it; they must then be
 * aligned to 32 bytes wherever a range begins. */
const lsi_sum_loops *lsi_sum_loops_best(bool past_cache);
extern const lsi_sum_loops lsi_sum_loops_avx2, lsi_sum_loops_avx2_past_cache;

/* out[k][i] = scale * (output k of the plan), for i in [lo, hi).  `stack` has plan->depth blocks. */
void lsi_sum_run(const lsi_sum_plan *plan, const lsi_sum_loops *loops, const float *const *in,
                 const float *weight, float scale, float *const *out, int64_t lo, int64_t hi, float *stack);

/* -- narrow.c: conversions for narrow wires
 * ----------------------------------------------------------------------
 */

typedef struct lsi_narrow_loops {
    void (*narrow)(uint16_t *to, const float *from, int64_t n);
    void (*widen)(float *to, const uint16_t *from, int64_t n);
} lsi_narrow_loops;
/* All give the same bits.  NULL: floats travel as they are. */
const lsi_narrow_loops *lsi_narrow_loops_best(ls_wire wire);
const lsi_narrow_loops *lsi_narrow_loops_plain(ls_wire wire);
extern const lsi_narrow_loops lsi_narrow_bf16_avx2, lsi_narrow_f16_avx2;

#endif
