/* collectives.h: what exchanges between ranks take: by kind, length and wire, of all ranks together.
 *
 * The exchanges are those of training.  Each is timed in two ways: alone, from when the last rank has begun
 * until the last has its result; and while the ranks compute, looking after it now and then, for what it
 * takes of a rank's processor.  Rounds take all of them in turns, so that a machine that is disturbed for a
 * while disturbs all alike. */
#ifndef LS_BENCH_COLLECTIVES_H
#define LS_BENCH_COLLECTIVES_H

#include <jansson.h>

#include "base/stats.h"
#include "base/text.h"
#include "bench/ranks.h"
#include "comm/comm.h"

enum {
    LS_COLLECTIVES_FORMAT = 1,
    LS_COLLECTIVES_SIZES = 32,    /* of a measurement */
    LS_COLLECTIVES_ROUNDS = 1001, /* at most */
    LS_COLLECTIVES_FILE = 100000  /* results of a file, at most */
};
#define LS_COLLECTIVES_BYTES_MAX ((int64_t)4 << 30) /* of a vector */

/* Sizes are bytes of the whole vector of floats, ascending. */
typedef struct ls_collectives_args {
    int64_t bytes[LS_COLLECTIVES_SIZES];
    int n_sizes;
    int rounds;     /* 0: as many as fit `seconds`, at least 5 */
    double seconds; /* 0: 5 */
    /* Called between rounds in all ranks; may be NULL. */
    void (*progress)(void *ctx, int done, int planned);
    void *ctx;
} ls_collectives_args;

/* "4KiB,1MiB": fills bytes and n_sizes; NULL: from 1 KiB to 64 MiB by factors of 4. */
ls_status ls_collectives_sizes(ls_collectives_args *a, const char *text, ls_err *err) LS_MUST_CHECK;

/* One exchange, of all ranks. */
typedef struct ls_collective_time {
    ls_collective kind;
    ls_wire wire;  /* between machines; inside a machine, and of what is gathered, always f32 */
    int64_t bytes; /* of the vector of floats */
    int ranks, hosts, most_on_host;
    int rounds, repeats; /* exchanges in a row that a round times */
    ls_spread seconds;
    double core_s;     /* of a rank that computes meanwhile: the mean over ranks of their medians */
    double sent_bytes; /* by the machine that sends most, to others */
    bool oversubscribed;
} ls_collective_time;

/* Bytes of the vector as they cross machines. */
double ls_collective_wire_bytes(const ls_collective_time *t);

typedef struct ls_collective_times {
    ls_collective_time *of;
    int n;
    size_t capacity;
    double *rank_core_s; /* [i * ranks + rank]: medians; NULL: read from a file */
    int ranks, cores;
    char host[LS_RANK_HOST_MAX]; /* of rank 0 */
} ls_collective_times;

/* Collective: all kinds and sizes, and between machines both wires.  The same on all ranks.  `crowd` as
 * ls_crowd_look found it.  Release in any case. */
ls_status ls_collectives_measure(ls_collective_times *out, const ls_collectives_args *a,
                                 const ls_crowd *crowd, ls_comm *comm, ls_err *err) LS_MUST_CHECK;
void ls_collective_times_release(ls_collective_times *t); /* frees and zeroes */

/* -- results as lines of JSON (docs/bench.md) --------------------------------------------------------------
 */

/* Result i; `version` and `when` (seconds since 1970) go along. */
json_t *ls_collective_json(const ls_collective_times *t, int i, const char *version, int64_t when);
/* Adds what the text has to `t`, which starts as {0}: lines of JSON, of which those with another event are
 * passed over.  LS_DATA names the line and what is wrong.  Release in any case. */
ls_status ls_collectives_parse(ls_collective_times *t, const char *text, size_t length,
                               ls_err *err) LS_MUST_CHECK;

#endif
