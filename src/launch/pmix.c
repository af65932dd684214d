/* pmix.c: starts and stops the PMIx server, and carries what it says to the launcher's loop. */
#include "launch/pmix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/module.h"

ls_status lsi_pmix_load(const ls_pmix_module **out, ls_err *err)
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

/* -- the box: filled by threads of the library, emptied by the loop
 * ------------------------------------------
 */

ls_status lsi_blob_fill(lsi_blob *b, const void *data, size_t n)
{
    b->data = ls_alloc(LS_MEM_CLI, n);
    if (b->data == NULL) return LS_NOMEM;
    if (n > 0) memcpy(b->data, data, n);
    b->n = n;
    b->is_here = true;
    return LS_OK;
}

static void ring(lsi_pmix *p)
{
    const uint64_t one = 1;

    (void)!write(p->bell, &one, sizeof one);
}

/* Called by a thread of the library. */
static void on_fence(void *ctx, const char *data, size_t n)
{
    lsi_pmix *p = ctx;

    pthread_mutex_lock(&p->lock);
    if (lsi_blob_fill(&p->box.fence, data, n) != LS_OK) p->box.aborted = true;
    pthread_mutex_unlock(&p->lock);
    ring(p);
}

/* Called by a thread of the library. */
static void on_abort(void *ctx, int rank, int status, const char *text)
{
    lsi_pmix *p = ctx;

    (void)text;
    pthread_mutex_lock(&p->lock);
    p->box.aborted = true;
    p->box.abort_rank = rank;
    p->box.abort_status = status;
    pthread_mutex_unlock(&p->lock);
    ring(p);
}

void lsi_pmix_take_news(lsi_pmix *p, lsi_pmix_news *news)
{
    uint64_t count;

    /* The bell before the box: what comes between the two rings again, and is found at the next look. */
    (void)!read(p->bell, &count, sizeof count);
    pthread_mutex_lock(&p->lock);
    *news = p->box;
    p->box.fence = (lsi_blob){0};
    pthread_mutex_unlock(&p->lock);
}

void lsi_pmix_fence_done_take(lsi_pmix *p, uint8_t *data, size_t n)
{
    uint8_t *old = p->fenced;

    p->fenced = data;
    p->module->fence_done((const char *)data, n);
    ls_free(old);
}

/* -- what a rank needs to know ------------------------------------------------------------------------------
 */

static void add_word(void *ctx, const char *word)
{
    const int fd = *(const int *)ctx;

    /* A pipe holds 64 KiB, the environment a few: this does not block. */
    (void)!write(fd, word, strlen(word) + 1);
}

/* What MPI needs to know beside what PMIx says. */
static void add_mpi_words(const lsi_pmix *p, const lsi_interface *interface, int fd)
{
    char word[256];

    /* Open MPI 4.1 takes a rank without mpirun for a run of its own unless it believes in this launcher. */
    add_word(&fd, "JSM_JSRUN_PORT=1");
    add_word(&fd, "OMPI_MCA_mpi_yield_when_idle=1");
    /* Its files of shared memory would else be in /dev/shm, by a name that launchers on one machine share,
     * and stay there when a rank is killed. */
    snprintf(word, sizeof word, "OMPI_MCA_btl_vader_backing_directory=%s", p->folder.path);
    add_word(&fd, word);
    if (interface->network[0] == '\0') return;
    snprintf(word, sizeof word, "OMPI_MCA_btl_tcp_if_include=%s", interface->network);
    add_word(&fd, word);
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

ls_status lsi_pmix_join(lsi_pmix *p, int local_rank, ls_err *err)
{
    const int fd = p->env_pipe[local_rank][0];
    ls_status st = LS_OK;

    close(p->bell);
    close(p->folder.lock);
    for (int i = 0; i < p->n_ranks; i++) {
        close(p->env_pipe[i][1]);
        if (i != local_rank) close(p->env_pipe[i][0]);
    }
    LS_TRY(take_environment(fd, err));
    close(fd);
out:
    return st;
}

/* -- the server ---------------------------------------------------------------------------------------------
 */

void lsi_pmix_init(lsi_pmix *p)
{
    *p = (lsi_pmix){.bell = -1, .folder = {.lock = -1}};
    pthread_mutex_init(&p->lock, NULL);
}

ls_status lsi_pmix_prepare(lsi_pmix *p, int n_ranks, ls_err *err)
{
    p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->env_pipe = ls_alloc(LS_MEM_CLI, sizeof *p->env_pipe * (size_t)n_ranks);
    if (p->env_pipe == NULL) return ls_fail(err, LS_NOMEM, "no memory for %d ranks", n_ranks);
    p->n_ranks = n_ranks;
    for (int i = 0; i < n_ranks; i++) p->env_pipe[i][0] = p->env_pipe[i][1] = -1;
    for (int i = 0; i < n_ranks; i++)
        if (pipe2(p->env_pipe[i], O_CLOEXEC) != 0) return ls_fail(err, LS_IO, "a pipe: %s", strerror(errno));
    return lsi_folder_make(&p->folder, err);
}

ls_status lsi_pmix_start(lsi_pmix *p, const lsi_party *party, ls_err *err)
{
    const ls_pmix_job job = {.name = party->name,
                             .hosts = party->hosts,
                             .host = party->host,
                             .node = party->node,
                             .nodes = party->nodes,
                             .local_size = party->ranks,
                             .folder = p->folder.path,
                             .ctx = p,
                             .fence = on_fence,
                             .aborted = on_abort};
    char text[LS_PMIX_ERROR_BYTES] = "";

    if (p->module->start(&job, text) != 0)
        return ls_fail(err, LS_UNSUPPORTED, "PMIx does not start: %s", text);
    p->runs = true;
    for (int i = 0; i < party->ranks; i++) {
        int fd = p->env_pipe[i][1];
        if (p->module->environment(party->node * party->ranks + i, add_word, &fd, text) != 0)
            return ls_fail(err, LS_UNSUPPORTED, "PMIx: %s", text);
        add_mpi_words(p, &party->interface, fd);
        add_word(&fd, "");
        close(p->env_pipe[i][0]);
        close(fd);
        p->env_pipe[i][0] = p->env_pipe[i][1] = -1;
    }
    return LS_OK;
}

void lsi_pmix_release(lsi_pmix *p)
{
    if (p->runs) p->module->stop();
    lsi_folder_remove(&p->folder);
    for (int i = 0; p->env_pipe != NULL && i < p->n_ranks; i++)
        for (int k = 0; k < 2; k++)
            if (p->env_pipe[i][k] >= 0) close(p->env_pipe[i][k]);
    if (p->bell >= 0) close(p->bell);
    ls_free(p->env_pipe);
    ls_free(p->fenced);
    ls_free(p->box.fence.data);
    pthread_mutex_destroy(&p->lock);
}
