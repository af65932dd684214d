/* jobs.c: a job per point: its script, its number, its end. */
#include "study/jobs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "base/replace.h"
#include "launch/launch.h"
#include "study/study_internal.h"

typedef struct point_job {
    int count, repeat;
    char id[LS_SUBMIT_ID_MAX]; /* "": there is none, or it has ended */
} point_job;

struct ls_study_jobs {
    const ls_study *s;
    const ls_study_jobs_wish *w;
    char folder[LS_STUDY_PATH_MAX], program[LS_STUDY_PATH_MAX], name[LS_SUBMIT_NAME_MAX];
    int n;
    point_job of[];
};

/* -- whether they fit -------------------------------------------------------------------------------------
 */

static ls_submit_request request_of(const ls_study *s, const ls_study_jobs_wish *w, int count)
{
    return (ls_submit_request){.nodes = count,
                               .ranks_per_node = s->ranks_per_node,
                               .threads = s->threads,
                               .want = w->want,
                               .in_turn = true};
}

ls_status ls_study_jobs_fit(ls_study *s, const ls_study_jobs_wish *w, ls_err *err)
{
    ls_submit_cluster *c = ls_alloc(LS_MEM_CLI, sizeof *c);
    const ls_submit_partition *p;
    ls_status st = LS_OK;

    if (c == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    LS_TRY(ls_slurm_cluster(c, err));
    LS_TRY(ls_submit_partition_of(&p, w->want.partition, c, err));
    for (int i = 0; i < s->n_counts; i++) {
        ls_submit_request q = request_of(s, w, s->counts[i]);
        LS_TRY(ls_submit_check(&q, err));
        LS_TRY(ls_submit_fit(&q, c, err));
    }
    s->host = ls_arena_printf(s->arena, "Slurm partition %s", p->name);
    s->cores = (int)ls_submit_cpus(p, s->counts[s->n_counts - 1]);
    if (s->host == NULL) st = ls_fail(err, LS_NOMEM, "no memory");
out:
    ls_free(c);
    return st;
}

/* -- a point's files --------------------------------------------------------------------------------------
 */

/* Whole path of FOLDER/logs/NAME.ending. */
static ls_status path_of(const ls_study_jobs *j, int count, int repeat, const char *ending,
                         char path[LS_STUDY_PATH_MAX], ls_err *err)
{
    char name[64], file[LS_STUDY_PATH_MAX];
    ls_status st = LS_OK;

    lsi_point_name(j->s, count, repeat, name);
    if (snprintf(file, sizeof file, "%s/logs/%s.%s", j->s->dir, name, ending) >= (int)sizeof file)
        return ls_fail(err, LS_INVALID, "%.200s...: the path is too long", j->s->dir);
    if (file[0] == '/')
        memcpy(path, file, sizeof file);
    else
        LS_TRY(lsi_study_join(path, j->folder, file, err));
out:
    return st;
}

/* -- submitting -------------------------------------------------------------------------------------------
 */

/* The job that an earlier process submitted for this point, if it is to be waited for; its number in p->id.
 */
static bool find_earlier(const char *id_file, const char *log, point_job *p)
{
    ls_submit_job job;
    char *bytes = NULL;
    size_t n = 0;
    bool found = false;

    if (lsi_study_read(id_file, &bytes, &n, NULL) == LS_OK && n > 0 && n < LS_SUBMIT_ID_MAX) {
        snprintf(p->id, sizeof p->id, "%.*s", (int)strcspn(bytes, "\n"), bytes);
        /* Numbers begin anew on another cluster; the log tells whose job it is. */
        found = ls_slurm_job(&job, p->id, NULL) == LS_OK && strcmp(job.log, log) == 0 &&
                (job.phase != LS_JOB_ENDED || ls_submit_exit_code(&job) == 0);
    }
    if (!found) p->id[0] = '\0';
    ls_free(bytes);
    return found;
}

static ls_status submit_request(const ls_submit_request *q, const char *id_file, point_job *p, ls_err *err)
{
    ls_text script = {0};
    char line[LS_SUBMIT_ID_MAX + 2];
    ls_status st = LS_OK;

    LS_TRY(ls_submit_check(q, err));
    LS_TRY(ls_submit_script(&script, q, LS_SUBMIT_SLURM, err));
    unlink(q->result);
    unlink(q->log);
    LS_TRY(ls_slurm_submit(script.data, p->id, err));
    snprintf(line, sizeof line, "%s\n", p->id);
    LS_TRY(ls_replace_file(id_file, line, strlen(line), err));
out:
    ls_text_release(&script);
    return st;
}

static ls_status submit_point(ls_study_jobs *j, point_job *p, ls_err *err)
{
    char log[LS_STUDY_PATH_MAX], result[LS_STUDY_PATH_MAX], id_file[LS_STUDY_PATH_MAX],
        run[LS_STUDY_PATH_MAX];
    ls_submit_request q = request_of(j->s, j->w, p->count);
    lsi_task task;
    ls_arena *arena = NULL;
    ls_status st = LS_OK;

    LS_TRY(path_of(j, p->count, p->repeat, "log", log, err));
    LS_TRY(path_of(j, p->count, p->repeat, "out", result, err));
    LS_TRY(path_of(j, p->count, p->repeat, "job", id_file, err));
    if (find_earlier(id_file, log, p)) goto out;
    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    LS_TRY(lsi_point_task(&task, j->s, p->count, p->repeat, arena, err));
    q.words = task.words;
    q.n_words = task.n;
    q.run_dir = task.run_dir;
    if (task.run_dir != NULL && task.run_dir[0] != '/') {
        LS_TRY(lsi_study_join(run, j->folder, task.run_dir, err));
        q.run_dir = run;
    }
    q.name = j->name;
    q.folder = j->folder;
    q.program = j->program;
    q.log = log;
    q.result = result;
    LS_TRY(submit_request(&q, id_file, p, err));
out:
    ls_arena_destroy(arena);
    return st;
}

/* Every point without a result, in the order in which the study takes them. */
static ls_status submit_all(ls_study_jobs *j, ls_err *err)
{
    const ls_study *s = j->s;
    int order[LS_STUDY_COUNTS_MAX];
    ls_study_point point;
    ls_status st = LS_OK;

    for (int repeat = 1; repeat <= s->repeats; repeat++) {
        ls_study_order(s->n_counts, repeat, order);
        for (int i = 0; i < s->n_counts; i++) {
            point_job *p = &j->of[j->n];
            bool there;
            *p = (point_job){.count = s->counts[order[i]], .repeat = repeat};
            if (lsi_point_load(s, p->count, repeat, &point, &there, NULL) == LS_OK && there) continue;
            j->n++;
            LS_TRY(submit_point(j, p, err));
        }
    }
out:
    return st;
}

ls_status ls_study_jobs_submit(ls_study_jobs **out, const ls_study *s, const ls_study_jobs_wish *w, int *n,
                               ls_err *err)
{
    const size_t most = (size_t)s->n_counts * (size_t)s->repeats + 1;
    ls_study_jobs *j = ls_alloc(LS_MEM_CLI, sizeof *j + sizeof j->of[0] * most);
    char name[256];
    ls_status st = LS_OK;

    *out = NULL;
    if (j == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    j->s = s;
    j->w = w;
    snprintf(name, sizeof name, "scale-%s-%s", s->name, ls_study_mode_name(s->mode));
    ls_submit_job_name(name, j->name, sizeof j->name);
    if (getcwd(j->folder, sizeof j->folder) == NULL || !ls_program_path(j->program, sizeof j->program))
        LS_TRY(ls_fail(err, LS_IO, "this folder, or where this program lies, cannot be told"));
    LS_TRY(submit_all(j, err));
    *n = j->n;
    *out = j;
    j = NULL;
out:
    ls_study_jobs_close(j);
    return st;
}

void ls_study_jobs_close(ls_study_jobs *j)
{
    const ls_submit_watcher nobody = {.stop_fd = -1};
    ls_submit_job job;

    if (j == NULL) return;
    /* Backwards: one that waits must not begin because the one before it is gone. */
    for (int i = j->n - 1; i >= 0; i--) {
        if (j->of[i].id[0] == '\0') continue;
        if (ls_slurm_cancel(j->of[i].id, !j->s->train, &job, NULL) != LS_OK) continue;
        if (job.phase == LS_JOB_RUNS && ls_slurm_follow(j->of[i].id, NULL, &nobody, &job, NULL) != LS_OK)
            continue; /* its checkpoint was waited for as far as Slurm answers */
    }
    ls_free(j);
}

/* -- waiting ----------------------------------------------------------------------------------------------
 */

typedef struct told {
    const ls_study_jobs *j;
    const ls_study_job *point;
    const char *id;
} told;

static void tell_state(void *ctx, const ls_submit_job *job)
{
    const told *t = ctx;

    if (t->j->w->state != NULL) t->j->w->state(t->j->w->ctx, t->point, t->id, job);
}

static point_job *find(ls_study_jobs *j, const ls_study_job *job)
{
    for (int i = 0; i < j->n; i++)
        if (j->of[i].count == job->count && j->of[i].repeat == job->repeat) return &j->of[i];
    return NULL;
}

/* The last line of what the ranks printed. */
static ls_status read_result(const ls_study_jobs *j, const ls_study_job *job, ls_text *line, ls_err *err)
{
    char path[LS_STUDY_PATH_MAX], *bytes = NULL, *last;
    size_t n = 0;
    ls_status st = LS_OK;

    LS_TRY(path_of(j, job->count, job->repeat, "out", path, err));
    LS_TRY(lsi_study_read(path, &bytes, &n, err));
    while (n > 0 && bytes[n - 1] == '\n') bytes[--n] = '\0';
    last = strrchr(bytes, '\n');
    ls_text_add(line, "%s\n", last != NULL ? last + 1 : bytes);
    if (line->failed) st = ls_fail(err, LS_NOMEM, "no memory");
out:
    ls_free(bytes);
    return st;
}

ls_status ls_study_run_job(void *ctx, const ls_study_job *job, ls_text *line, ls_err *err)
{
    ls_study_jobs *j = ctx;
    point_job *p = find(j, job);
    told t = {.j = j, .point = job};
    const ls_submit_watcher w = {.state = tell_state, .ctx = &t, .stop_fd = job->stop_fd};
    ls_submit_job end;
    ls_status st = LS_OK;
    int code;

    if (p == NULL || p->id[0] == '\0')
        return ls_fail(err, LS_INVALID, "its result has vanished since the study began; run it again");
    t.id = p->id;
    LS_TRY(ls_slurm_follow(p->id, NULL, &w, &end, err));
    if (end.phase != LS_JOB_ENDED) return ls_fail(err, LS_CANCELLED, "stopped on request");
    code = ls_submit_exit_code(&end);
    if (code != LS_EXIT_DONE) {
        st = lsi_point_failed(job->log, code, err);
        ls_fail_in(err, st, "job %s (%s)", p->id, end.state);
    } else {
        st = read_result(j, job, line, err);
    }
    p->id[0] = '\0';
out:
    return st;
}
