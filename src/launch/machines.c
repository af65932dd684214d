/* machines.c: the launcher of one machine of several.
 *
 * When the machines have found one another (rendezvous.h), each forks its ranks, starts a PMIx server for
 * them (pmix.h), and the launchers stay connected, all with machine 0: they carry the fences of MPI, pass on
 * requests to stop and the first failure, and notice by heartbeats when a machine is gone.  All of it is done
 * by the launcher's one loop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "launch/launch_internal.h"
#include "launch/pmix.h"
#include "launch/rendezvous.h"
#include "launch/stall.h"

#define BEAT_S       1.0 /* between two signs of life; while ranks stop LSI_STOP_BEAT_S */
#define LIMIT_S      6.0 /* without one: the machine is gone (LOCKSTEP_HEARTBEAT) */
#define LAST_WORDS_S 1.0

typedef struct machines {
    const ls_start *start;
    lsi_party party;
    lsi_pmix pmix;
    lsi_blob *blobs; /* machine 0: what each machine has handed in for the fence under way */
    double limit, next_beat;

    bool has_failed, is_finished, is_over, is_stopping;
    uint32_t *moves; /* by machine: what its beats said last; of this one: what they are to say */
    bool *is_done;   /* machine 0: which machines' ranks have ended */
    int code;        /* of the run, when it is over; before: that of the ranks here, when they have ended */
} machines;

/* -- telling others ---------------------------------------------------------------------------------------
 */

static bool is_first(const machines *x)
{
    return x->party.node == 0;
}

/* To machine 0, or from it to all but `except`.  A link that cannot be written to is found lost when it is
 * read. */
static void tell(machines *x, const lsi_message *m, int except)
{
    for (int i = 0; i < x->party.nodes; i++)
        if (x->party.links[i] != NULL && i != except) (void)!lsi_link_send(x->party.links[i], m, NULL);
}

static void tell_failure(machines *x, const lsi_failure *f, int except)
{
    lsi_message m = {.kind = LSI_MSG_FAILED, .rank = (uint32_t)f->rank, .code = (uint32_t)f->code};

    snprintf(m.text, sizeof m.text, "%s", f->text);
    x->has_failed = true;
    tell(x, &m, except);
}

static void on_failed(void *ctx, const lsi_failure *f)
{
    tell_failure(ctx, f, -1);
}

/* The ranks are to stop: what they do is told, and waited for, in a shorter time. */
static void hurry(machines *x)
{
    if (x->is_stopping) return;
    x->is_stopping = true;
    x->next_beat = 0;
}

static void on_stop_asked(void *ctx, int number, int how)
{
    const lsi_message m = {.kind = LSI_MSG_STOP, .number = (uint32_t)number, .code = (uint32_t)how};

    hurry(ctx);
    tell(ctx, &m, -1);
}

/* Machine 0: all ranks everywhere have ended well. */
static void end_if_all_done(machines *x)
{
    lsi_message m = {.kind = LSI_MSG_DONE};

    for (int i = 0; i < x->party.nodes; i++)
        if (!x->is_done[i]) return;
    m.code = (uint32_t)x->code;
    tell(x, &m, -1);
    x->is_over = true;
}

/* 75 (a checkpoint, then an end) counts more than 0. */
static int worse(int a, int b)
{
    return a > b ? a : b;
}

static void on_finished(void *ctx, int code)
{
    machines *x = ctx;
    const lsi_message m = {.kind = LSI_MSG_DONE, .code = (uint32_t)code};

    x->is_finished = true;
    x->code = worse(x->code, code);
    if (x->has_failed) return;
    if (!is_first(x)) {
        tell(x, &m, -1);
        return;
    }
    x->is_done[0] = true;
    end_if_all_done(x);
}

/* Machine 0 speaks for all: what changes anywhere changes the number that it sends. */
static uint32_t moves_of_all(const machines *x)
{
    uint32_t sum = 0;

    for (int i = 0; i < x->party.nodes; i++) sum += x->moves[i];
    return sum;
}

static uint64_t elsewhere(void *ctx)
{
    const machines *x = ctx;

    return UINT64_C(1) + (uint32_t)(moves_of_all(x) - x->moves[x->party.node]);
}

static void on_moved(void *ctx, uint64_t moves)
{
    const machines *x = ctx;

    x->moves[x->party.node] = (uint32_t)moves;
}

static bool is_busy(void *ctx)
{
    const machines *x = ctx;

    return !x->has_failed && !x->is_over;
}

/* -- fences of MPI ----------------------------------------------------------------------------------------
 */

/* Machine 0: when all have handed in theirs, all get everything, in the order of machines. */
static void complete_fence(machines *x)
{
    lsi_message m = {.kind = LSI_MSG_FENCE};
    size_t n = 0, at = 0;
    uint8_t *all;

    for (int i = 0; i < x->party.nodes; i++) {
        if (!x->blobs[i].is_here) return;
        n += x->blobs[i].n;
    }
    all = ls_alloc(LS_MEM_CLI, n);
    LS_BUG_IF(all == NULL && n < 4096);
    for (int i = 0; i < x->party.nodes; i++) {
        lsi_blob *s = &x->blobs[i];
        if (all != NULL && s->n > 0) memcpy(all + at, s->data, s->n);
        at += s->n;
        ls_free(s->data);
        *s = (lsi_blob){0};
    }
    if (all == NULL) return; /* the ranks' own time limit tells */
    m.data = all;
    m.n_data = n;
    tell(x, &m, -1);
    lsi_pmix_fence_done_take(&x->pmix, all, n);
}

/* What the PMIx server here has said. */
static void hear_pmix(machines *x, lsi_group *g)
{
    lsi_pmix_news news;
    lsi_failure f = {.code = LS_EXIT_FAILED};
    lsi_blob s;

    lsi_pmix_take_news(&x->pmix, &news);
    s = news.fence;
    if (news.aborted && !x->has_failed) {
        f.rank = news.abort_rank;
        snprintf(f.text, sizeof f.text, "rank %d called MPI_Abort with %d", f.rank, news.abort_status);
        tell_failure(x, &f, -1);
        lsi_group_fail(g, &f);
    }
    if (!s.is_here) return;
    if (is_first(x)) {
        ls_free(x->blobs[0].data);
        x->blobs[0] = s;
        complete_fence(x);
    } else {
        const lsi_message m = {.kind = LSI_MSG_FENCE, .data = s.data, .n_data = s.n};
        tell(x, &m, -1);
        ls_free(s.data);
    }
}

/* -- hearing others ---------------------------------------------------------------------------------------
 */

static void hear_fence(machines *x, int from, const lsi_message *m)
{
    lsi_blob s = {0};

    if (lsi_blob_fill(&s, m->data, m->n_data) != LS_OK) return;
    if (!is_first(x)) {
        lsi_pmix_fence_done_take(&x->pmix, s.data, s.n);
        return;
    }
    ls_free(x->blobs[from].data);
    x->blobs[from] = s;
    complete_fence(x);
}

static void hear_failure(machines *x, lsi_group *g, int from, const lsi_message *m)
{
    lsi_failure f = {.rank = (int)m->rank, .code = (int)m->code};

    snprintf(f.text, sizeof f.text, "%.500s", m->text);
    if (x->has_failed) return;
    if (is_first(x)) tell_failure(x, &f, from);
    x->has_failed = true;
    lsi_group_fail(g, &f);
}

static void hear(machines *x, lsi_group *g, int from, const lsi_message *m)
{
    switch (m->kind) {
    case LSI_MSG_BEAT: x->moves[from] = m->number; break;
    case LSI_MSG_FENCE: hear_fence(x, from, m); break;
    case LSI_MSG_FAILED: hear_failure(x, g, from, m); break;
    case LSI_MSG_STOP:
        hurry(x);
        lsi_group_stop(g, (int)m->number, (int)m->code);
        if (is_first(x)) tell(x, m, from);
        break;
    case LSI_MSG_DONE:
        x->code = worse(x->code, (int)m->code);
        if (is_first(x)) {
            x->is_done[from] = true;
            end_if_all_done(x);
        } else {
            x->is_over = true;
        }
        break;
    default: break;
    }
}

/* The first rank of a lost machine stands for all of them. */
static void lose(machines *x, lsi_group *g, int node, const char *why)
{
    lsi_failure f = {.rank = node * x->party.ranks, .code = LS_EXIT_LOST};

    if (x->has_failed || x->is_over) return;
    if (x->party.ranks == 1)
        snprintf(f.text, sizeof f.text, "machine %d with rank %d is lost: %.300s", node, f.rank, why);
    else
        snprintf(f.text, sizeof f.text, "machine %d with ranks %d to %d is lost: %.300s", node, f.rank,
                 f.rank + x->party.ranks - 1, why);
    if (is_first(x)) tell_failure(x, &f, node);
    x->has_failed = true;
    lsi_group_fail(g, &f);
}

static void hear_link(machines *x, lsi_group *g, int i, double now)
{
    lsi_link **link = &x->party.links[i];
    lsi_message m;
    ls_err err = {0};
    ls_status st;
    bool got;

    do {
        st = lsi_link_pump(*link, &got, &m, &err);
        if (st == LS_OK && got) hear(x, g, i, &m);
    } while (st == LS_OK && got);
    if (st == LS_OK && now - lsi_link_heard(*link) > x->limit)
        st = ls_fail(&err, LS_LOST, "no sign of life from %s for %.1f s", lsi_link_peer(*link),
                     now - lsi_link_heard(*link));
    if (st == LS_OK) return;
    lsi_link_destroy(*link);
    *link = NULL;
    if (!(is_first(x) && x->is_done[i])) lose(x, g, i, err.text);
}

/* -- the loop's hooks -------------------------------------------------------------------------------------
 */

static int descriptors(void *ctx, struct pollfd *fds)
{
    machines *x = ctx;
    int n = 0;

    fds[n++] = (struct pollfd){.fd = x->pmix.bell, .events = POLLIN};
    for (int i = 0; i < x->party.nodes && n < LSI_EXTRA_FDS_MAX; i++)
        if (x->party.links[i] != NULL)
            fds[n++] = (struct pollfd){.fd = lsi_link_fd(x->party.links[i]),
                                       .events = lsi_link_events(x->party.links[i])};
    return n;
}

static void on_ready(void *ctx, lsi_group *g, const struct pollfd *fds, int n)
{
    machines *x = ctx;
    const double now = ls_clock_seconds();

    (void)n;
    if (fds[0].revents != 0) hear_pmix(x, g);
    if (now >= x->next_beat) {
        const lsi_message beat = {.kind = LSI_MSG_BEAT,
                                  .number = is_first(x) ? moves_of_all(x) : x->moves[x->party.node]};
        x->next_beat = now + (x->is_stopping ? LSI_STOP_BEAT_S : BEAT_S);
        tell(x, &beat, -1);
    }
    for (int i = 0; i < x->party.nodes; i++)
        if (x->party.links[i] != NULL) hear_link(x, g, i, now);
}

static double next_due(void *ctx)
{
    return ((machines *)ctx)->next_beat;
}

/* -- starting ---------------------------------------------------------------------------------------------
 */

static ls_status on_started(void *ctx, ls_err *err)
{
    machines *x = ctx;

    return lsi_pmix_start(&x->pmix, &x->party, err);
}

static ls_status open_comm(void *ctx, ls_comm **out, int heap_fd, int local_rank, ls_err *err)
{
    machines *x = ctx;
    char heap[16];
    ls_status st = LS_OK;

    for (int i = 0; i < x->party.nodes; i++)
        if (x->party.links[i] != NULL) close(lsi_link_fd(x->party.links[i]));
    LS_TRY(lsi_pmix_join(&x->pmix, local_rank, err));
    snprintf(heap, sizeof heap, "%d", heap_fd);
    setenv("LOCKSTEP_HEAP_FD", heap, 1);
    LS_TRY(ls_comm_open_mpi(out, err));
out:
    return st;
}

/* -- the whole --------------------------------------------------------------------------------------------
 */

ls_status ls_launch_machines_probe(char *about, size_t bytes, ls_err *err)
{
    const ls_pmix_module *pmix = NULL;
    const char *text;
    ls_status st = LS_OK;
    int name;

    LS_TRY(lsi_auth_usable(err));
    LS_TRY(lsi_pmix_load(&pmix, err));
    text = pmix->library();
    /* "OpenPMIx 4.2.2 (PMIx Standard: ...)" */
    name = (int)strcspn(text, "(");
    while (name > 0 && text[name - 1] == ' ') name--;
    snprintf(about, bytes, "%.*s, libsodium %s", name, text, lsi_auth_library());
out:
    return st;
}

static ls_status prepare(machines *x, ls_err *err)
{
    const int n = x->start->place.nodes;
    const char *given = getenv("LOCKSTEP_HEARTBEAT");

    x->limit = given != NULL && atof(given) >= 1.5 ? atof(given) : LIMIT_S;
    x->blobs = ls_alloc(LS_MEM_CLI, sizeof *x->blobs * (size_t)n);
    x->is_done = ls_alloc(LS_MEM_CLI, sizeof *x->is_done * (size_t)n);
    x->moves = ls_alloc(LS_MEM_CLI, sizeof *x->moves * (size_t)n);
    if (x->blobs == NULL || x->is_done == NULL || x->moves == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for %d machines", n);
    return lsi_pmix_prepare(&x->pmix, x->start->place.local_size, err);
}

static void release(machines *x)
{
    for (int i = 0; x->party.links != NULL && i < x->party.nodes; i++)
        if (x->party.links[i] != NULL) lsi_link_flush(x->party.links[i], LAST_WORDS_S);
    lsi_pmix_release(&x->pmix);
    for (int i = 0; x->blobs != NULL && i < x->start->place.nodes; i++) ls_free(x->blobs[i].data);
    ls_free(x->blobs);
    ls_free(x->is_done);
    ls_free(x->moves);
    lsi_party_release(&x->party);
}

/* The cores are for all ranks of the machine, also for those that other launchers start. */
static ls_status divide_cores(lsi_cores *c, const ls_start *start, const ls_launch_options *o, ls_err *err)
{
    ls_launch_options mine = *o;

    if (start->n_beside > 0 && o->threads == 0) {
        mine.threads = ls_parallel_default_threads(start->place.local_size + start->n_beside);
        if (mine.bind == NULL) mine.bind = "none";
    }
    return lsi_cores_divide(c, start->place.local_size, &mine, err);
}

ls_status lsi_run_machine(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main,
                          void *arg, int *code, ls_err *err)
{
    machines x = {.start = start};
    const lsi_group_hooks hooks = {.ctx = &x,
                                   .open_comm = open_comm,
                                   .started = on_started,
                                   .descriptors = descriptors,
                                   .ready = on_ready,
                                   .due = next_due,
                                   .failed = on_failed,
                                   .stop_asked = on_stop_asked,
                                   .finished = on_finished,
                                   .busy = is_busy,
                                   .elsewhere = elsewhere,
                                   .moved = on_moved};
    lsi_cores cores = {0};
    char text[512];
    ls_status st = LS_OK;

    lsi_pmix_init(&x.pmix);
    if (start->note[0] != '\0' && !o->silent) printf("machines      %s\n", start->note);
    LS_TRY(divide_cores(&cores, start, o, err));
    LS_TRY(lsi_pmix_load(&x.pmix.module, err));
    LS_TRY(lsi_rendezvous(&x.party, start, o, err));
    LS_TRY(prepare(&x, err));
    ls_parallel_set_wait_policy(cores.threads * start->place.local_size);
    lsi_cores_text(&cores, text, sizeof text);
    if (!o->silent && start->place.local_size == 1)
        printf("ranks         rank %d of %d here, %s\n", start->place.rank, start->place.size, text);
    else if (!o->silent)
        printf("ranks         %d to %d of %d here, %s\n", start->place.rank,
               start->place.rank + start->place.local_size - 1, start->place.size, text);
    LS_TRY(lsi_group_run(start, &cores, rank_main, arg, &hooks, o->end, code, err));
    if (x.is_over && *code == LS_EXIT_DONE) *code = x.code;
out:
    lsi_cores_release(&cores);
    release(&x);
    return st;
}
