/* collectives.c: times exchanges on all ranks. */
#include "bench/collectives.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { MIN_ROUNDS = 5, MAX_ROUNDS = 101, WARM_ROUNDS = 2, MAX_REPEATS = 50, ALONE_PIECES = 8 };
#define ROW_S   1e-3  /* exchanges in a row that are timed together take about so long */
#define PIECE_S 50e-6 /* a piece of computing between two looks at an exchange */

/* -- sizes ------------------------------------------------------------------------------------------------
 */

static ls_status add_size(ls_collectives_args *a, const char *word, ls_err *err)
{
    size_t bytes;
    ls_status st = LS_OK;

    LS_TRY(ls_text_parse_bytes(word, "--sizes", &bytes, err));
    if (bytes % sizeof(float) != 0 || (int64_t)bytes > LS_COLLECTIVES_BYTES_MAX)
        return ls_fail(err, LS_INVALID, "--sizes: %s: vectors have whole floats, up to 4 GiB of them", word);
    if (a->n_sizes == LS_COLLECTIVES_SIZES)
        return ls_fail(err, LS_INVALID, "--sizes: more than %d of them", (int)LS_COLLECTIVES_SIZES);
    if (a->n_sizes > 0 && (int64_t)bytes <= a->bytes[a->n_sizes - 1])
        return ls_fail(err, LS_INVALID, "--sizes: %s is not larger than what comes before it", word);
    a->bytes[a->n_sizes++] = (int64_t)bytes;
out:
    return st;
}

ls_status ls_collectives_sizes(ls_collectives_args *a, const char *text, ls_err *err)
{
    ls_status st = LS_OK;

    a->n_sizes = 0;
    for (int64_t bytes = 1024; text == NULL && bytes <= (int64_t)64 << 20; bytes *= 4)
        a->bytes[a->n_sizes++] = bytes;
    while (text != NULL) {
        const char *comma = strchr(text, ',');
        const size_t length = comma != NULL ? (size_t)(comma - text) : strlen(text);
        char word[48];
        if (length == 0 || length >= sizeof word)
            return ls_fail(err, LS_INVALID, "--sizes \"%s\": expected sizes such as 4KiB,1MiB", text);
        memcpy(word, text, length);
        word[length] = '\0';
        LS_TRY(add_size(a, word, err));
        text = comma != NULL ? comma + 1 : NULL;
    }
out:
    return st;
}

double ls_collective_wire_bytes(const ls_collective_time *t)
{
    return (double)t->bytes * (t->wire == LS_WIRE_F32 ? 1.0 : 0.5);
}

/* -- the exchanges ----------------------------------------------------------------------------------------
 */

typedef struct subject {
    ls_exchange *x;
    double *begin, *end, *core; /* by round; of this rank, in seconds of one row, core of one exchange */
    double sent;                /* bytes of this rank in one exchange */
    int repeats, busy_repeats;
} subject;

typedef struct bench {
    ls_comm *comm;
    const ls_collectives_args *args;
    ls_collective_times *out;
    subject *of;
    ls_exchange_room room;
    ls_shared *memory;
    double *columns; /* begin, end and core of all */
    double zero;     /* of all ranks of one machine */
    int64_t piece;   /* turns of a piece of computing */
    int rounds;
} bench;

/* Between machines also the wire of 16 bits, for what is converted at all. */
static ls_status list_subjects(bench *b, const ls_crowd *crowd, ls_err *err)
{
    static const ls_collective kinds[] = {LS_COLL_ALL_REDUCE, LS_COLL_REDUCE_SCATTER, LS_COLL_ALL_GATHER};
    ls_collective_times *t = b->out;
    double most = ls_comm_local_size(b->comm);
    ls_status st = LS_OK;

    LS_TRY(ls_comm_max(b->comm, &most, 1, "ranks of a machine", err));
    t->capacity = sizeof kinds / sizeof kinds[0] * 2 * (size_t)b->args->n_sizes;
    t->of = ls_alloc(LS_MEM_CLI, sizeof *t->of * t->capacity);
    if (t->of == NULL) return ls_fail(err, LS_NOMEM, "no memory for %zu exchanges", t->capacity);
    for (int s = 0; s < b->args->n_sizes; s++)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (int wire = LS_WIRE_F32; wire <= LS_WIRE_BF16; wire++) {
                if (wire != LS_WIRE_F32 && (crowd->hosts == 1 || kinds[k] == LS_COLL_ALL_GATHER)) continue;
                t->of[t->n++] = (ls_collective_time){.kind = kinds[k],
                                                     .wire = (ls_wire)wire,
                                                     .bytes = b->args->bytes[s],
                                                     .ranks = ls_comm_size(b->comm),
                                                     .hosts = crowd->hosts,
                                                     .most_on_host = (int)most,
                                                     .oversubscribed = crowd->oversubscribed};
            }
out:
    return st;
}

static ls_exchange_options options_of(const ls_collective_time *t)
{
    return (ls_exchange_options){
        .name = "collective", .kind = t->kind, .n = t->bytes / (int64_t)sizeof(float), .wire = t->wire};
}

/* All exchanges take turns in one room: together they would take some hundred MiB for every rank. */
static ls_status make_exchanges(bench *b, ls_err *err)
{
    const ls_collective_times *t = b->out;
    ls_status st = LS_OK;

    b->of = ls_alloc(LS_MEM_CLI, sizeof *b->of * (size_t)t->n);
    if (b->of == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d exchanges", t->n);
    for (int i = 0; i < t->n; i++) {
        const ls_exchange_options o = options_of(&t->of[i]);
        ls_exchange_need_room(b->comm, &o, &b->room);
    }
    LS_TRY(
        ls_shared_create(&b->memory, b->comm, ls_exchange_room_bytes(b->comm, LS_GROUP_ALL, &b->room), err));
    b->room.at = ls_shared_data(b->memory);
    for (int i = 0; i < t->n; i++) {
        ls_exchange_options o = options_of(&t->of[i]);
        o.room = &b->room;
        LS_TRY(ls_exchange_create(&b->of[i].x, b->comm, &o, err));
    }
    /* Whole pages of zeros would be read from one that the processor has at hand. */
    for (int i = 0; i < t->n; i++) {
        const int64_t n = t->of[i].bytes / (int64_t)sizeof(float),
                      own = t->of[i].kind == LS_COLL_ALL_GATHER ? ls_exchange_piece(n, t->of[i].ranks) : n;
        for (int64_t k = 0; k < own; k++) ls_exchange_part(b->of[i].x, 0)[k] = 1;
    }
out:
    return st;
}

/* -- computing --------------------------------------------------------------------------------------------
 */

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Needs no memory, so that an exchange slows it by its processor time alone. */
static void compute(int64_t turns)
{
    static volatile float seen;
    float x = seen;

    for (int64_t i = 0; i < turns; i++) x = x * 0.5f + 1.0f;
    seen = x;
}

/* The turns of a piece, by this rank's processor. */
static void choose_piece(bench *b)
{
    double seconds = 0;

    for (b->piece = 1000; seconds < 20 * PIECE_S; b->piece *= 2) {
        const double begun = cpu_seconds();
        compute(b->piece);
        seconds = cpu_seconds() - begun;
    }
    b->piece = (int64_t)((double)b->piece / 2 * PIECE_S / seconds);
}

/* -- rounds -----------------------------------------------------------------------------------------------
 */

/* Ranks of several machines have no clock in common: each counts from the barrier. */
static ls_status together(const bench *b, double *zero, ls_err *err)
{
    const ls_status st = ls_comm_barrier(b->comm, "before an exchange", err);

    *zero = ls_comm_hosts(b->comm) > 1 ? ls_clock_seconds() : b->zero;
    return st;
}

/* Exchanges in a row: the next cannot begin before the last rank has begun the one before. */
static ls_status time_alone(bench *b, subject *s, int round, ls_err *err)
{
    double zero, begin;
    ls_status st = LS_OK;

    LS_TRY(together(b, &zero, err));
    begin = ls_clock_seconds();
    for (int i = 0; i < s->repeats; i++) {
        ls_exchange_start(s->x, 1);
        LS_TRY(ls_exchange_wait(s->x, err));
    }
    s->begin[round] = begin - zero;
    s->end[round] = ls_clock_seconds() - zero;
out:
    return st;
}

/* What a rank takes longer for the same pieces with exchanges under way than without.  By the time of the
 * processor: whoever else wants it does not count. */
static ls_status time_busy(bench *b, subject *s, int round, ls_err *err)
{
    double zero, begin, piece;
    int64_t pieces = 0;
    ls_status st = LS_OK;

    LS_TRY(together(b, &zero, err));
    begin = cpu_seconds();
    for (int i = 0; i < ALONE_PIECES; i++) compute(b->piece);
    piece = (cpu_seconds() - begin) / ALONE_PIECES;
    begin = cpu_seconds();
    for (int i = 0; i < s->busy_repeats; i++) {
        bool ready = false;
        ls_exchange_start(s->x, 1);
        for (; !ready; pieces++) {
            compute(b->piece);
            ready = ls_exchange_progress(s->x);
        }
        LS_TRY(ls_exchange_wait(s->x, err));
    }
    s->core[round] = (cpu_seconds() - begin - (double)pieces * piece) / s->busy_repeats;
    if (s->core[round] < 0) s->core[round] = 0; /* less than what pieces differ by */
out:
    return st;
}

/* Every round begins with the next one, so that none always follows the same. */
static ls_status one_round(bench *b, int round, ls_err *err)
{
    const int n = b->out->n;
    ls_status st = LS_OK;

    for (int i = 0; i < n; i++) LS_TRY(time_alone(b, &b->of[(i + round) % n], round, err));
    for (int i = 0; i < n; i++) LS_TRY(time_busy(b, &b->of[(i + round) % n], round, err));
out:
    return st;
}

/* Two rounds for caches, pages and connections, of which the second one says how long things take; then how
 * many exchanges make up a row, and how many rounds there are. */
static ls_status warm_up(bench *b, ls_err *err)
{
    const double seconds = b->args->seconds > 0 ? b->args->seconds : 5;
    double begun = 0, round_s;
    ls_status st = LS_OK;

    for (int i = 0; i < b->out->n; i++) b->of[i].repeats = b->of[i].busy_repeats = 1;
    LS_TRY(one_round(b, 0, err));
    for (int i = 0; i < b->out->n; i++) {
        subject *s = &b->of[i];
        double took;
        s->sent = -(double)ls_comm_sent_bytes(b->comm);
        LS_TRY(time_alone(b, s, 0, err));
        s->sent += (double)ls_comm_sent_bytes(b->comm);
        took = s->end[0] - s->begin[0];
        LS_TRY(ls_comm_max(b->comm, &took, 1, "choosing repeats", err));
        s->repeats = took * MAX_REPEATS < ROW_S ? MAX_REPEATS : took < ROW_S ? (int)(ROW_S / took) : 1;
        s->busy_repeats = took + PIECE_S < ROW_S ? (int)(ROW_S / (took + PIECE_S)) : 1;
    }
    begun = ls_clock_seconds();
    LS_TRY(one_round(b, 0, err));
    round_s = ls_clock_seconds() - begun;
    LS_TRY(ls_comm_max(b->comm, &round_s, 1, "choosing rounds", err));
    b->rounds = b->args->rounds;
    if (b->rounds > 0) return LS_OK;
    b->rounds = seconds / round_s < MAX_ROUNDS ? (int)(seconds / round_s) : MAX_ROUNDS;
    if (b->rounds < MIN_ROUNDS) b->rounds = MIN_ROUNDS;
out:
    return st;
}

static ls_status make_columns(bench *b, ls_err *err)
{
    const size_t most = (size_t)(b->args->rounds > MAX_ROUNDS ? b->args->rounds : MAX_ROUNDS),
                 n = (size_t)b->out->n;

    b->columns = ls_alloc(LS_MEM_CLI, sizeof *b->columns * 3 * n * most);
    if (b->columns == NULL) return ls_fail(err, LS_NOMEM, "no memory for %zu rounds", most);
    for (size_t i = 0; i < n; i++) {
        b->of[i].begin = b->columns + 3 * i * most;
        b->of[i].end = b->of[i].begin + most;
        b->of[i].core = b->of[i].end + most;
    }
    return LS_OK;
}

/* -- results ----------------------------------------------------------------------------------------------
 */

/* Bytes that the ranks of each machine send in one exchange: the most of any. */
static ls_status find_sent(const bench *b, const subject *s, double *most, ls_err *err)
{
    const int hosts = ls_comm_hosts(b->comm);
    double *sent = ls_alloc(LS_MEM_CLI, sizeof *sent * (size_t)hosts);
    ls_status st = LS_OK;

    *most = 0;
    if (sent == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d machines", hosts);
    for (int h = 0; h < hosts; h++) sent[h] = h == ls_comm_host(b->comm) ? s->sent : 0;
    LS_TRY(ls_comm_sum(b->comm, sent, hosts, "adding up bytes", err));
    for (int h = 0; h < hosts; h++)
        if (sent[h] > *most) *most = sent[h];
out:
    ls_free(sent);
    return st;
}

static ls_status conclude_one(bench *b, int i, ls_err *err)
{
    subject *s = &b->of[i];
    ls_collective_time *t = &b->out->of[i];
    double *cores = b->out->rank_core_s + (size_t)i * (size_t)t->ranks;
    double mine = ls_spread_of(s->core, (size_t)b->rounds).p50;
    ls_status st = LS_OK;

    LS_TRY(ls_comm_max(b->comm, s->begin, b->rounds, "when exchanges began", err));
    LS_TRY(ls_comm_max(b->comm, s->end, b->rounds, "when exchanges ended", err));
    for (int r = 0; r < b->rounds; r++) s->end[r] = (s->end[r] - s->begin[r]) / s->repeats;
    t->seconds = ls_spread_of(s->end, (size_t)b->rounds);
    t->rounds = b->rounds;
    t->repeats = s->repeats;
    LS_TRY(ls_comm_gather_all(b->comm, &mine, sizeof mine, cores, "gathering core times", err));
    t->core_s = ls_mean_of(cores, (size_t)t->ranks).mean;
    LS_TRY(find_sent(b, s, &t->sent_bytes, err));
out:
    return st;
}

static ls_status conclude(bench *b, const ls_crowd *crowd, ls_err *err)
{
    ls_collective_times *t = b->out;
    ls_status st = LS_OK;

    t->ranks = ls_comm_size(b->comm);
    t->cores = crowd->cores;
    if (gethostname(t->host, sizeof t->host - 1) != 0) snprintf(t->host, sizeof t->host, "?");
    LS_TRY(ls_comm_broadcast(b->comm, t->host, sizeof t->host, 0, "the name of a machine", err));
    t->rank_core_s = ls_alloc(LS_MEM_CLI, sizeof *t->rank_core_s * (size_t)t->n * (size_t)t->ranks);
    if (t->rank_core_s == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d ranks", t->ranks);
    for (int i = 0; i < t->n; i++) LS_TRY(conclude_one(b, i, err));
out:
    return st;
}

static void release(bench *b)
{
    for (int i = 0; b->of != NULL && i < b->out->n; i++) ls_exchange_destroy(b->of[i].x);
    ls_shared_destroy(b->memory);
    ls_free(b->columns);
    ls_free(b->of);
}

ls_status ls_collectives_measure(ls_collective_times *out, const ls_collectives_args *a,
                                 const ls_crowd *crowd, ls_comm *comm, ls_err *err)
{
    bench b = {.comm = comm, .args = a, .out = out};
    ls_status st = LS_OK;

    *out = (ls_collective_times){0};
    LS_TRY(list_subjects(&b, crowd, err));
    LS_TRY(make_exchanges(&b, err));
    LS_TRY(make_columns(&b, err));
    choose_piece(&b);
    LS_TRY(ls_job_zero(comm, &b.zero, err));
    LS_TRY(warm_up(&b, err));
    for (int r = 0; r < b.rounds; r++) {
        LS_TRY(one_round(&b, r, err));
        if (a->progress != NULL) a->progress(a->ctx, r + 1, b.rounds);
    }
    LS_TRY(conclude(&b, crowd, err));
out:
    release(&b);
    return st;
}

void ls_collective_times_release(ls_collective_times *t)
{
    ls_free(t->of);
    ls_free(t->rank_core_s);
    *t = (ls_collective_times){0};
}
