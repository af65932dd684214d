/* nodes.c: the launcher of one machine of several.
 *
 * When the machines have met (meet.h), each forks its ranks, starts a PMIx server for them (pmix_module.h),
 * and the launchers stay connected, all with machine 0: they carry the fences of MPI, pass on requests to
 * stop and the first failure, and notice by heartbeats when a machine is gone.  Threads of the PMIx library
 * only fill a box and ring a bell; everything else is done by the launcher's one loop.
 *
 * The fork comes first: a process that has already started the library could not be a client of it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/module.h"
#include "base/parallel.h"
#include "launch/folder.h"
#include "launch/launch_internal.h"
#include "launch/meet.h"
#include "launch/pmix_module.h"
#include "launch/stall.h"

#define BEAT_S       1.0 /* between two signs of life; while ranks stop LSI_STOP_BEAT_S */
#define LIMIT_S      6.0 /* without one: the machine is gone (LOCKSTEP_HEARTBEAT) */
#define LAST_WORDS_S 1.0

/* What a machine has handed in for the fence under way. */
typedef struct share {
    uint8_t *data;
    size_t n;
    bool is_here;
} share;

typedef struct nodes {
    const ls_start *start;
    lsi_party party;
    const ls_pmix_module *pmix;
    bool pmix_runs;
    lsi_folder folder;  /* of PMIx and MPI */
    int (*env_pipe)[2]; /* by local rank: what it needs to find the server */
    double limit, next_beat;

    int bell;             /* an eventfd: the box has something */
    pthread_mutex_t lock; /* guards `box`, which threads of PMIx fill */
    struct {
        share fence;
        bool aborted;
        int abort_rank, abort_status;
    } box;
    share *shares;   /* machine 0: by machine */
    uint8_t *fenced; /* the last fence's data of all; PMIx reads them until the next one */

    bool has_failed, is_finished, is_over, is_stopping;
    uint32_t *moves; /* by machine: what its beats said last; of this one: what they are to say */
    bool *is_done;   /* machine 0: which machines' ranks have ended */
    int code;        /* of the run, when it is over; before: that of the ranks here, when they have ended */
} nodes;

/* -- telling others ---------------------------------------------------------------------------------------
 */

static bool is_first(const nodes *x)
{
    return x->party.node == 0;
}

/* To machine 0, or from it to all but `except`.  A link that cannot be written to is found lost when it is
 * read. */
static void tell(nodes *x, const lsi_message *m, int except)
{
    for (int i = 0; i < x->party.nodes; i++)
        if (x->party.links[i] != NULL && i != except) (void)!lsi_link_send(x->party.links[i], m, NULL);
}

static void tell_failure(nodes *x, const lsi_failure *f, int except)
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
static void hurry(nodes *x)
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
static void end_if_all_done(nodes *x)
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
    nodes *x = ctx;
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
static uint32_t moves_of_all(const nodes *x)
{
    uint32_t sum = 0;

    for (int i = 0; i < x->party.nodes; i++) sum += x->moves[i];
    return sum;
}

static uint64_t elsewhere(void *ctx)
{
    const nodes *x = ctx;

    return UINT64_C(1) + (uint32_t)(moves_of_all(x) - x->moves[x->party.node]);
}

static void on_moved(void *ctx, uint64_t moves)
{
    const nodes *x = ctx;

    x->moves[x->party.node] = (uint32_t)moves;
}

static bool is_busy(void *ctx)
{
    const nodes *x = ctx;

    return !x->has_failed && !x->is_over;
}

/* -- fences of MPI ----------------------------------------------------------------------------------------
 */

static ls_status keep_share(share *s, const void *data, size_t n)
{
    s->data = ls_alloc(LS_MEM_CLI, n);
    if (s->data == NULL) return LS_NOMEM;
    if (n > 0) memcpy(s->data, data, n);
    s->n = n;
    s->is_here = true;
    return LS_OK;
}

static void ring(nodes *x)
{
    const uint64_t one = 1;

    (void)!write(x->bell, &one, sizeof one);
}

/* Called by a thread of PMIx. */
static void on_fence(void *ctx, const char *data, size_t n)
{
    nodes *x = ctx;

    pthread_mutex_lock(&x->lock);
    if (keep_share(&x->box.fence, data, n) != LS_OK) x->box.aborted = true;
    pthread_mutex_unlock(&x->lock);
    ring(x);
}

/* Called by a thread of PMIx. */
static void on_abort(void *ctx, int rank, int status, const char *text)
{
    nodes *x = ctx;

    (void)text;
    pthread_mutex_lock(&x->lock);
    x->box.aborted = true;
    x->box.abort_rank = rank;
    x->box.abort_status = status;
    pthread_mutex_unlock(&x->lock);
    ring(x);
}

static void deliver_fence_take(nodes *x, uint8_t *data, size_t n)
{
    uint8_t *old = x->fenced;

    x->fenced = data;
    x->pmix->fence_done((const char *)data, n);
    ls_free(old);
}

/* Machine 0: when all have handed in their share, all get everything, in the order of machines. */
static void complete_fence(nodes *x)
{
    lsi_message m = {.kind = LSI_MSG_FENCE};
    size_t n = 0, at = 0;
    uint8_t *all;

    for (int i = 0; i < x->party.nodes; i++) {
        if (!x->shares[i].is_here) return;
        n += x->shares[i].n;
    }
    all = ls_alloc(LS_MEM_CLI, n);
    LS_BUG_IF(all == NULL && n < 4096);
    for (int i = 0; i < x->party.nodes; i++) {
        share *s = &x->shares[i];
        if (all != NULL && s->n > 0) memcpy(all + at, s->data, s->n);
        at += s->n;
        ls_free(s->data);
        *s = (share){0};
    }
    if (all == NULL) return; /* the ranks' own time limit tells */
    m.data = all;
    m.n_data = n;
    tell(x, &m, -1);
    deliver_fence_take(x, all, n);
}

static void open_box(nodes *x, lsi_group *g)
{
    share s;
    bool aborted;
    lsi_failure f = {0};
    uint64_t count;

    (void)!read(x->bell, &count, sizeof count);
    pthread_mutex_lock(&x->lock);
    s = x->box.fence;
    x->box.fence = (share){0};
    aborted = x->box.aborted;
    f.rank = x->box.abort_rank;
    snprintf(f.text, sizeof f.text, "rank %d called MPI_Abort with %d", f.rank, x->box.abort_status);
    pthread_mutex_unlock(&x->lock);
    if (aborted && !x->has_failed) {
        f.code = LS_EXIT_FAILED;
        tell_failure(x, &f, -1);
        lsi_group_fail(g, &f);
    }
    if (!s.is_here) return;
    if (is_first(x)) {
        ls_free(x->shares[0].data);
        x->shares[0] = s;
        complete_fence(x);
    } else {
        const lsi_message m = {.kind = LSI_MSG_FENCE, .data = s.data, .n_data = s.n};
        tell(x, &m, -1);
        ls_free(s.data);
    }
}

/* -- hearing others ---------------------------------------------------------------------------------------
 */

static void hear_fence(nodes *x, int from, const lsi_message *m)
{
    share s = {0};

    if (keep_share(&s, m->data, m->n_data) != LS_OK) return;
    if (!is_first(x)) {
        deliver_fence_take(x, s.data, s.n);
        return;
    }
    ls_free(x->shares[from].data);
    x->shares[from] = s;
    complete_fence(x);
}

static void hear_failure(nodes *x, lsi_group *g, int from, const lsi_message *m)
{
    lsi_failure f = {.rank = (int)m->rank, .code = (int)m->code};

    snprintf(f.text, sizeof f.text, "%.500s", m->text);
    if (x->has_failed) return;
    if (is_first(x)) tell_failure(x, &f, from);
    x->has_failed = true;
    lsi_group_fail(g, &f);
}

static void hear(nodes *x, lsi_group *g, int from, const lsi_message *m)
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
static void lose(nodes *x, lsi_group *g, int node, const char *why)
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

static void hear_link(nodes *x, lsi_group *g, int i, double now)
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
    nodes *x = ctx;
    int n = 0;

    fds[n++] = (struct pollfd){.fd = x->bell, .events = POLLIN};
    for (int i = 0; i < x->party.nodes && n < LSI_EXTRA_FDS_MAX; i++)
        if (x->party.links[i] != NULL)
            fds[n++] = (struct pollfd){.fd = lsi_link_fd(x->party.links[i]),
                                       .events = lsi_link_events(x->party.links[i])};
    return n;
}

static void on_ready(void *ctx, lsi_group *g, const struct pollfd *fds, int n)
{
    nodes *x = ctx;
    const double now = ls_clock_seconds();

    (void)n;
    if (fds[0].revents != 0) open_box(x, g);
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
    return ((nodes *)ctx)->next_beat;
}

/* -- starting ---------------------------------------------------------------------------------------------
 */

static void add_word(void *ctx, const char *word)
{
    const int fd = *(const int *)ctx;

    /* A pipe holds 64 KiB, the environment a few: this does not block. */
    (void)!write(fd, word, strlen(word) + 1);
}

/* What MPI needs to know beside what PMIx says. */
static void add_mpi_words(const nodes *x, int fd)
{
    char word[256];

    /* Open MPI 4.1 takes a rank without mpirun for a run of its own unless it believes in this launcher. */
    add_word(&fd, "JSM_JSRUN_PORT=1");
    add_word(&fd, "OMPI_MCA_mpi_yield_when_idle=1");
    /* Its files of shared memory would else be in /dev/shm, by a name that launchers on one machine share,
     * and stay there when a rank is killed. */
    snprintf(word, sizeof word, "OMPI_MCA_btl_vader_backing_directory=%s", x->folder.path);
    add_word(&fd, word);
    if (x->party.interface.network[0] == '\0') return;
    snprintf(word, sizeof word, "OMPI_MCA_btl_tcp_if_include=%s", x->party.interface.network);
    add_word(&fd, word);
}

static ls_status on_started(void *ctx, ls_err *err)
{
    nodes *x = ctx;
    const lsi_party *p = &x->party;
    const ls_pmix_job job = {.name = p->name,
                             .hosts = p->hosts,
                             .host = p->host,
                             .node = p->node,
                             .nodes = p->nodes,
                             .local_size = p->ranks,
                             .folder = x->folder.path,
                             .ctx = x,
                             .fence = on_fence,
                             .aborted = on_abort};
    char text[LS_PMIX_ERROR_BYTES] = "";

    if (x->pmix->start(&job, text) != 0) return ls_fail(err, LS_UNSUPPORTED, "PMIx does not start: %s", text);
    x->pmix_runs = true;
    for (int i = 0; i < p->ranks; i++) {
        int fd = x->env_pipe[i][1];
        if (x->pmix->environment(p->node * p->ranks + i, add_word, &fd, text) != 0)
            return ls_fail(err, LS_UNSUPPORTED, "PMIx: %s", text);
        add_mpi_words(x, fd);
        add_word(&fd, "");
        close(x->env_pipe[i][0]);
        close(fd);
        x->env_pipe[i][0] = x->env_pipe[i][1] = -1;
    }
    return LS_OK;
}

/* In a rank: the variables, up to an empty word. */
static ls_status take_environment(int fd, ls_err *err)
{
    char word[4096];
    size_t n = 0;

    for (;;) {
        const ssize_t got = read(fd, word + n, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || n + 1 >= sizeof word) return ls_fail(err, LS_LOST, "the launcher is gone");
        if (word[n++] != '\0') continue;
        if (n == 1) return LS_OK;
        char *eq = strchr(word, '=');
        n = 0;
        if (eq == NULL) continue;
        *eq = '\0';
        /* What the user has set for Open MPI stays. */
        setenv(word, eq + 1, strncmp(word, "OMPI_", 5) != 0);
    }
}

static ls_status open_comm(void *ctx, ls_comm **out, int heap_fd, int local_rank, ls_err *err)
{
    nodes *x = ctx;
    const int fd = x->env_pipe[local_rank][0];
    char heap[16];
    ls_status st = LS_OK;

    close(x->bell);
    close(x->folder.lock);
    for (int i = 0; i < x->party.nodes; i++)
        if (x->party.links[i] != NULL) close(lsi_link_fd(x->party.links[i]));
    for (int i = 0; i < x->party.ranks; i++) {
        close(x->env_pipe[i][1]);
        if (i != local_rank) close(x->env_pipe[i][0]);
    }
    LS_TRY(take_environment(fd, err));
    close(fd);
    snprintf(heap, sizeof heap, "%d", heap_fd);
    setenv("LOCKSTEP_HEAP_FD", heap, 1);
    LS_TRY(ls_comm_open_mpi(out, err));
out:
    return st;
}

/* -- the whole --------------------------------------------------------------------------------------------
 */

static ls_status load_pmix(const ls_pmix_module **out, ls_err *err)
{
    void *symbol;
    ls_status st = ls_module_open(&symbol, "pmix", LS_PMIX_MODULE_SYMBOL, err);

    if (st != LS_OK)
        return ls_fail_in(err, st,
                          "several machines need PMIx to start MPI (Debian: libpmix-dev libopenmpi-dev)");
    *out = symbol;
    if ((*out)->version != LS_PMIX_MODULE_VERSION)
        return ls_fail(err, LS_UNSUPPORTED,
                       "module pmix is of another version: install all of Lockstep again");
    return LS_OK;
}

ls_status ls_launch_nodes_probe(char *about, size_t bytes, ls_err *err)
{
    const ls_pmix_module *pmix = NULL;
    const char *text;
    ls_status st = LS_OK;
    int name;

    LS_TRY(lsi_auth_usable(err));
    LS_TRY(load_pmix(&pmix, err));
    text = pmix->library();
    /* "OpenPMIx 4.2.2 (PMIx Standard: ...)" */
    name = (int)strcspn(text, "(");
    while (name > 0 && text[name - 1] == ' ') name--;
    snprintf(about, bytes, "%.*s, libsodium %s", name, text, lsi_auth_library());
out:
    return st;
}

static ls_status prepare(nodes *x, ls_err *err)
{
    const int ranks = x->start->place.local_size, n = x->start->place.nodes;
    const char *given = getenv("LOCKSTEP_HEARTBEAT");

    x->limit = given != NULL && atof(given) >= 1.5 ? atof(given) : LIMIT_S;
    x->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    x->env_pipe = ls_alloc(LS_MEM_CLI, sizeof *x->env_pipe * (size_t)ranks);
    x->shares = ls_alloc(LS_MEM_CLI, sizeof *x->shares * (size_t)n);
    x->is_done = ls_alloc(LS_MEM_CLI, sizeof *x->is_done * (size_t)n);
    x->moves = ls_alloc(LS_MEM_CLI, sizeof *x->moves * (size_t)n);
    if (x->env_pipe == NULL || x->shares == NULL || x->is_done == NULL || x->moves == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for %d ranks on %d machines", ranks, n);
    for (int i = 0; i < ranks; i++) x->env_pipe[i][0] = x->env_pipe[i][1] = -1;
    for (int i = 0; i < ranks; i++)
        if (pipe2(x->env_pipe[i], O_CLOEXEC) != 0) return ls_fail(err, LS_IO, "a pipe: %s", strerror(errno));
    return lsi_folder_make(&x->folder, err);
}

static void release(nodes *x)
{
    for (int i = 0; x->party.links != NULL && i < x->party.nodes; i++)
        if (x->party.links[i] != NULL) lsi_link_flush(x->party.links[i], LAST_WORDS_S);
    if (x->pmix_runs) x->pmix->stop();
    lsi_folder_remove(&x->folder);
    for (int i = 0; x->env_pipe != NULL && i < x->start->place.local_size; i++)
        for (int k = 0; k < 2; k++)
            if (x->env_pipe[i][k] >= 0) close(x->env_pipe[i][k]);
    for (int i = 0; x->shares != NULL && i < x->start->place.nodes; i++) ls_free(x->shares[i].data);
    if (x->bell >= 0) close(x->bell);
    ls_free(x->env_pipe);
    ls_free(x->shares);
    ls_free(x->is_done);
    ls_free(x->moves);
    ls_free(x->fenced);
    ls_free(x->box.fence.data);
    lsi_party_release(&x->party);
    pthread_mutex_destroy(&x->lock);
}

/* The cores are for all ranks of the machine, also for those that other launchers start. */
static ls_status share_cores(lsi_cores *c, const ls_start *start, const ls_launch_options *o, ls_err *err)
{
    ls_launch_options mine = *o;

    if (start->n_beside > 0 && o->threads == 0) {
        mine.threads = ls_parallel_default_threads(start->place.local_size + start->n_beside);
        if (mine.bind == NULL) mine.bind = "none";
    }
    return lsi_cores_share(c, start->place.local_size, &mine, err);
}

ls_status lsi_run_node(const ls_start *start, const ls_launch_options *o, ls_rank_main rank_main, void *arg,
                       int *code, ls_err *err)
{
    nodes x = {.start = start, .bell = -1, .folder = {.lock = -1}};
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

    pthread_mutex_init(&x.lock, NULL);
    if (start->note[0] != '\0' && !o->silent) printf("machines      %s\n", start->note);
    LS_TRY(share_cores(&cores, start, o, err));
    LS_TRY(load_pmix(&x.pmix, err));
    LS_TRY(lsi_meet_machines(&x.party, start, o, err));
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
