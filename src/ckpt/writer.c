/* writer.c: checkpoints written by a thread beside the run.
 *
 * The job belongs to the caller while the writer is idle and to the thread while it is busy; only `busy`,
 * `stop` and what is told about finished writes are shared, under the lock. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "ckpt/shelf.h"

typedef struct job {
    int64_t step;
    uint64_t plan_hash;
    double metric;
    json_t *state;
    lsi_table table;
    char *staging; /* the tensors' bytes; kept from job to job */
    size_t staging_bytes;
} job;

struct ls_ckpt_writer {
    lsi_shelf shelf; /* the thread's, once it runs */
    job job;
    pthread_t thread;
    bool has_thread;
    bool at_once;         /* no copies are made */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool busy, stop;
    ls_err result; /* of the newest write */
    ls_ckpt_writer_stats stats;
};

/* -- the thread -------------------------------------------------------------------------------------------
 */

static ls_status explain_full(const ls_ckpt_writer *w, ls_status st, ls_err *err)
{
    int64_t free_bytes = lsi_io_free_bytes(w->shelf.folder), missing = (int64_t)w->shelf.bytes - free_bytes;
    char a[32], b[32], c[32], remedy[200];
    size_t n;

    if (free_bytes < 0 || missing <= 0) return st;
    ls_fail_in(err, st, "a checkpoint needs %s (%llu bytes) in %s, %s are free, %s are missing",
               ls_text_bytes((double)w->shelf.bytes, a), (unsigned long long)w->shelf.bytes, w->shelf.folder,
               ls_text_bytes((double)free_bytes, b), ls_text_bytes((double)missing, c));
    n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, "; %s",
             lsi_shelf_remedy(&w->shelf, (double)free_bytes, remedy, sizeof remedy));
    return st;
}

static ls_status write_job(ls_ckpt_writer *w, ls_err *err)
{
    job *j = &w->job;
    char path[LSI_PATH], name[LS_CKPT_NAME];
    ls_status st = LS_OK;

    lsi_shelf_unreserve(&w->shelf);
    LS_TRY(lsi_io_join(path, sizeof path, w->shelf.folder, ls_ckpt_name(j->step, name), err));
    st = lsi_ckpt_write(w->shelf.io, path, &j->table, j->plan_hash, j->state, j->metric, err);
    if (st != LS_OK && (errno == ENOSPC || errno == EDQUOT)) explain_full(w, st, err);
    if (st == LS_OK) st = lsi_shelf_add(&w->shelf, j->step, j->metric, err);
out:
    lsi_shelf_reserve(&w->shelf);
    return ls_fail_in(err, st, "checkpoint of step %lld", (long long)j->step);
}

static void release_job(job *j)
{
    json_decref(j->state);
    j->state = NULL;
    lsi_table_release(&j->table);
}

static void finish_job(ls_ckpt_writer *w)
{
    double t0 = ls_clock_seconds();
    ls_err err = {0};
    ls_status st = write_job(w, &err);

    release_job(&w->job);
    if (st != LS_OK)
        ls_log(LS_LOG_WARN, "%s; %s", err.text,
               st == LS_LOST || st == LS_DISAGREE ? "the last good one stays"
                                                  : "the last good one stays and the run goes on");
    pthread_mutex_lock(&w->lock);
    w->result = err;
    w->stats.write_s += ls_clock_seconds() - t0;
    if (st == LS_OK)
        w->stats.written++;
    else
        w->stats.failed++;
    w->busy = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void *serve(void *arg)
{
    ls_ckpt_writer *w = arg;

    for (;;) {
        bool stop;
        pthread_mutex_lock(&w->lock);
        while (!w->busy && !w->stop) pthread_cond_wait(&w->changed, &w->lock);
        stop = !w->busy;
        pthread_mutex_unlock(&w->lock);
        if (stop) return NULL;
        finish_job(w);
    }
}

static ls_status start_thread(ls_ckpt_writer *w, ls_err *err)
{
    sigset_t all, before;
    int e;

    /* Signals are for the thread that trains. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    e = pthread_create(&w->thread, NULL, serve, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    w->has_thread = e == 0;
    return e == 0 ? LS_OK : ls_fail(err, LS_NOMEM, "checkpoints: no thread can be had: %s", strerror(e));
}

/* Room for a copy of so many bytes. */
static ls_status make_room(job *j, size_t bytes, ls_err *err)
{
    if (j->staging != NULL && bytes <= j->staging_bytes) return LS_OK;
    ls_free(j->staging);
    j->staging = ls_alloc(LS_MEM_CKPT, bytes);
    j->staging_bytes = j->staging != NULL ? bytes : 0;
    return j->staging != NULL
               ? LS_OK
               : ls_fail(err, LS_NOMEM, "checkpoint: no memory for a copy of %zu bytes", bytes);
}

/* -- for callers ------------------------------------------------------------------------------------------
 */

ls_status lsi_ckpt_writer_create(ls_ckpt_writer **out, const char *folder, ls_ckpt_keep keep, size_t bytes,
                                 const lsi_io *io, ls_err *err)
{
    ls_ckpt_writer *w = ls_alloc(LS_MEM_CKPT, sizeof *w);
    ls_status st = LS_OK;

    *out = w;
    if (w == NULL) return ls_fail(err, LS_NOMEM, "checkpoints: no memory");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->at_once = keep.at_once;
    LS_TRY(lsi_shelf_open(&w->shelf, folder, keep, bytes, io, err));
    /* Now, so that the first copy is as fast as the others. */
    if (!keep.at_once) LS_TRY(make_room(&w->job, bytes, err));
    LS_TRY(start_thread(w, err));
out:
    if (st != LS_OK) {
        ls_ckpt_writer_destroy(w);
        *out = NULL;
    }
    return st;
}

ls_status ls_ckpt_writer_create(ls_ckpt_writer **out, const char *folder, ls_ckpt_keep keep, size_t bytes,
                                ls_err *err)
{
    return lsi_ckpt_writer_create(out, folder, keep, bytes, NULL, err);
}

void ls_ckpt_writer_destroy(ls_ckpt_writer *w)
{
    if (w == NULL) return;
    if (w->has_thread) {
        pthread_mutex_lock(&w->lock);
        w->stop = true; /* after the job under way */
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    release_job(&w->job);
    ls_free(w->job.staging);
    lsi_shelf_release(&w->shelf);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    ls_free(w);
}

static void wait_idle(ls_ckpt_writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->busy) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* Names and bytes: nothing of the model's may be touched after submit has returned. */
static ls_status copy_tensors(job *j, const ls_state *vars, ls_err *err)
{
    ls_status st = LS_OK;
    size_t total = 0, at = 0;

    LS_TRY(lsi_table_of_state(&j->table, vars, err));
    LS_TRY(ls_arena_create(&j->table.arena, LS_MEM_CKPT, err));
    for (int i = 0; i < j->table.n; i++) total += j->table.items[i].bytes;
    LS_TRY(make_room(j, total, err));
    for (int i = 0; i < j->table.n; i++) {
        lsi_item *x = &j->table.items[i];
        LS_TRY(ls_tensor_read(x->tensor, 0, j->staging + at, x->bytes, err));
        x->tensor = NULL;
        x->host = j->staging + at;
        at += x->bytes;
        x->name = ls_arena_strdup(j->table.arena, x->name);
        if (x->name == NULL) {
            st = ls_fail(err, LS_NOMEM, "checkpoint: no memory for names");
            goto out;
        }
    }
out:
    return st;
}

ls_status ls_ckpt_writer_submit(ls_ckpt_writer *w, int64_t step, const ls_state *vars, uint64_t plan_hash,
                                const json_t *state, double metric, ls_err *err)
{
    const bool at_once = w->at_once || ls_pieces_any(vars, NULL);
    double t0 = ls_clock_seconds();
    job *j = &w->job;
    ls_status st;

    wait_idle(w);
    j->step = step;
    j->plan_hash = plan_hash;
    j->metric = metric;
    st = at_once ? lsi_table_of_state(&j->table, vars, err) : copy_tensors(j, vars, err);
    if (st == LS_OK) {
        j->state = state != NULL ? json_deep_copy(state) : json_object();
        if (j->state == NULL) st = ls_fail(err, LS_NOMEM, "checkpoint: no memory for the state of the run");
    }
    if (st != LS_OK) release_job(j);
    if (st == LS_OK && at_once) finish_job(w);
    pthread_mutex_lock(&w->lock);
    w->busy = st == LS_OK && !at_once;
    w->stats.submit_s += ls_clock_seconds() - t0;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return st;
}

ls_status ls_ckpt_writer_wait(ls_ckpt_writer *w, ls_err *err)
{
    wait_idle(w);
    return w->result.status == LS_OK ? LS_OK : ls_fail(err, w->result.status, "%s", w->result.text);
}

ls_ckpt_writer_stats ls_ckpt_writer_stats_of(ls_ckpt_writer *w)
{
    ls_ckpt_writer_stats s;

    pthread_mutex_lock(&w->lock);
    s = w->stats;
    pthread_mutex_unlock(&w->lock);
    return s;
}
