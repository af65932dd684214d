/* predict_measure.c: the benchmarks that a calibration consists of, one child of this program after another.
 *
 * Where machines are joined by hand, all of them run the same command: exchanges between them come first, in
 * the same order on each, and machine 0 goes on alone with what concerns one machine. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"
#include "base/units.h"
#include "predict.h"
#include "study/study.h"

/* -- counts -----------------------------------------------------------------------------------------------
 */

ls_status predict_counts_read(predict_counts *c, const char *option, const char *text, ls_err *err)
{
    const char *at = text;

    for (c->n = 0;; at++) {
        char *end;
        const long x = strtol(at, &end, 10);
        if (end == at || x < 1 || x > 1000000 || (*end != ',' && *end != '\0'))
            return ls_fail(err, LS_INVALID, "%s %s: expected counts such as 1,2,4", option, text);
        if (c->n > 0 && x <= c->of[c->n - 1])
            return ls_fail(err, LS_INVALID, "%s %s: %ld is not more than what comes before it", option, text,
                           x);
        if (c->n == PREDICT_COUNTS)
            return ls_fail(err, LS_INVALID, "%s: more than %d counts", option, (int)PREDICT_COUNTS);
        c->of[c->n++] = (int)x;
        at = end;
        if (*end == '\0') return LS_OK;
    }
}

/* -- commands ---------------------------------------------------------------------------------------------
 */

enum { WORDS = 160, TEXTS = 16, TEXT_BYTES = 64 };

/* The words of a child's command; numbers are texts of its own. */
typedef struct command {
    const char *word[WORDS];
    int n;
    char text[TEXTS][TEXT_BYTES];
    int n_texts;
    bool full;
} command;

static void add(command *c, const char *word)
{
    if (c->n + 1 < WORDS)
        c->word[c->n++] = word;
    else
        c->full = true;
}

static void add_number(command *c, const char *option, const char *format, double x)
{
    char *text = c->text[c->n_texts++];

    snprintf(text, TEXT_BYTES, format, x);
    if (option != NULL) add(c, option);
    add(c, text);
}

static void add_joining(command *c, const predict_measure *m)
{
    const cli_args *a = m->args;

    add_number(c, "--nodes", "%.0f", m->nodes);
    add_number(c, "--join-timeout", "%g", a->join_timeout > 0 ? a->join_timeout : 60);
    if (a->node_rank != NULL) add(c, "--node-rank"), add(c, a->node_rank);
    if (a->master != NULL) add(c, "--master"), add(c, a->master);
    if (a->insecure) add(c, "--insecure");
}

/* What all benchmarks are told. */
static void add_common(command *c, const predict_measure *m, int ranks, const char *export)
{
    const cli_args *a = m->args;

    add_number(c, "-n", "%.0f", ranks);
    add_number(c, "--threads", "%.0f", m->threads);
    if (a->steps > 0) add_number(c, "--steps", "%.0f", a->steps);
    if (a->seconds > 0) add_number(c, "--seconds", "%g", a->seconds);
    add(c, "--json");
    if (export != NULL) add(c, "--export"), add(c, export);
}

/* -- one child --------------------------------------------------------------------------------------------
 */

typedef struct runner {
    predict_measure *m;
    int stop_fd, all;
} runner;

static void tell(const runner *r, const char *what, double seconds)
{
    char text[LS_UNITS_TEXT];

    if (r->m->args->json)
        cli_print_json_take(json_pack("{s:s, s:s, s:i, s:i, s:f}", "event", "measured", "what", what, "done",
                                      r->m->done, "all", r->all, "seconds", seconds));
    else
        printf("[%d/%d] %s: %s\n", r->m->done, r->all, what, ls_units_seconds(seconds, text));
    ls_output_flush();
}

static ls_status run_child(runner *r, command *c, const char *what, ls_err *err)
{
    const ls_study none = {0};
    char log[sizeof r->m->folder + 16];
    const ls_study_job job = {.study = &none, .argv = c->word, .log = log, .stop_fd = r->stop_fd};
    const double begun = ls_clock_seconds();
    ls_text line = {0};
    ls_status st;

    if (c->full) return ls_fail(err, LS_INVALID, "too many settings");
    snprintf(log, sizeof log, "%s/log", r->m->folder);
    c->word[c->n] = NULL;
    st = ls_fail_in(err, ls_study_run_child(NULL, &job, &line, err), "%s", what);
    ls_text_release(&line);
    if (st != LS_OK) return st;
    r->m->done++;
    tell(r, what, ls_clock_seconds() - begun);
    return LS_OK;
}

/* The next file of the folder; only rank 0 writes, which is on machine 0. */
static const char *new_file(predict_measure *m)
{
    char *path = m->file[m->n_files];

    if (m->node > 0) return NULL;
    snprintf(path, sizeof m->file[0], "%s/%03d.json", m->folder, m->n_files);
    m->n_files++;
    return path;
}

static ls_status exchanges(runner *r, int ranks, bool joined, ls_err *err)
{
    command c = {0};
    char what[96];

    add(&c, "lockstep"), add(&c, "bench"), add(&c, "--collectives");
    if (r->m->args->sizes != NULL) add(&c, "--sizes"), add(&c, r->m->args->sizes);
    if (joined) add_joining(&c, r->m);
    add_common(&c, r->m, ranks, new_file(r->m));
    if (joined)
        snprintf(what, sizeof what, "exchanges of %d machines of %d rank%s", r->m->nodes, ranks,
                 ranks == 1 ? "" : "s");
    else
        snprintf(what, sizeof what, "exchanges of %d ranks", ranks);
    return run_child(r, &c, what, err);
}

/* Whether ranks that take steps at the same time exchange anything. */
typedef enum company { TOGETHER, BESIDE, JOINED /* with those of all machines */ } company;

static ls_status steps(runner *r, int ranks, company how, int batch, ls_err *err)
{
    const cli_args *a = r->m->args;
    command c = {0};
    char what[96];

    add(&c, "lockstep"), add(&c, "bench"), add(&c, a->model);
    for (int i = 0; i < a->n_settings; i++) add(&c, a->settings[i]);
    add_number(&c, NULL, "batch.per_rank=%.0f", batch);
    if (how == BESIDE) add_number(&c, "--beside", "%.0f", ranks - 1);
    if (how == JOINED) add_joining(&c, r->m);
    add_common(&c, r->m, how == BESIDE ? 1 : ranks, new_file(r->m));
    if (how == JOINED)
        snprintf(what, sizeof what, "steps of %d machines of %d rank%s, batch %d", r->m->nodes, ranks,
                 ranks == 1 ? "" : "s", batch);
    else
        snprintf(what, sizeof what, "steps of %d rank%s%s, batch %d", ranks, ranks == 1 ? "" : "s",
                 how == BESIDE ? " beside one another" : "", batch);
    return run_child(r, &c, what, err);
}

/* -- all --------------------------------------------------------------------------------------------------
 */

static int most_ranks(const predict_measure *m)
{
    return m->ranks.of[m->ranks.n - 1];
}

static bool checks_alone(const predict_measure *m)
{
    return m->batches.n > 0 && m->full > 1 && most_ranks(m) > 1;
}

/* How ranks of a machine slow one another: those that are measured, with the middle batch, and a full machine
 * with every batch.  Ranks with devices of their own exchange meanwhile: what that costs is in their nodes;
 * of the others the most take steps with exchange once, too, for a look at how well all of it agrees. */
static ls_status crowded_steps(runner *r, ls_err *err)
{
    const predict_measure *m = r->m;
    ls_status st = LS_OK;

    for (int i = 0; i < m->ranks.n; i++) {
        const int ranks = m->ranks.of[i];
        if (ranks == 1 || ranks == m->full) continue;
        LS_TRY(steps(r, ranks, m->full > 1 ? BESIDE : TOGETHER, m->batch, err));
    }
    for (int i = 0; m->full > 1 && i < m->batches.n; i++)
        LS_TRY(steps(r, m->full, BESIDE, m->batches.of[i], err));
    if (checks_alone(m)) LS_TRY(steps(r, most_ranks(m), TOGETHER, m->batch, err));
out:
    return st;
}

static int count_all(const predict_measure *m)
{
    int n = 0;

    for (int i = 0; i < m->ranks.n; i++) {
        const int ranks = m->ranks.of[i];
        n += m->nodes > 1;
        if (m->node == 0) n += (ranks > 1) + (ranks > 1 && ranks != m->full && m->batches.n > 0);
    }
    n += m->nodes > 1 && m->batches.n > 0;
    if (m->node > 0) return n;
    return n + m->batches.n * (m->full > 1 ? 2 : 1) + checks_alone(m);
}

static ls_status run_all(runner *r, ls_err *err)
{
    const predict_measure *m = r->m;
    ls_status st = LS_OK;

    for (int i = 0; m->nodes > 1 && i < m->ranks.n; i++) LS_TRY(exchanges(r, m->ranks.of[i], true, err));
    if (m->nodes > 1 && m->batches.n > 0) LS_TRY(steps(r, most_ranks(m), JOINED, m->batch, err));
    if (m->node > 0) goto out;
    for (int i = 0; i < m->ranks.n; i++)
        if (m->ranks.of[i] > 1) LS_TRY(exchanges(r, m->ranks.of[i], false, err));
    for (int i = 0; i < m->batches.n; i++) LS_TRY(steps(r, 1, TOGETHER, m->batches.of[i], err));
    if (m->batches.n > 0) LS_TRY(crowded_steps(r, err));
out:
    return st;
}

static ls_status make_folder(predict_measure *m, ls_err *err)
{
    const char *where = getenv("TMPDIR");

    if (where == NULL || where[0] == '\0') where = "/tmp";
    if (strlen(where) > sizeof m->folder - 32)
        return ls_fail(err, LS_INVALID, "TMPDIR: the path is too long (%zu bytes)", strlen(where));
    snprintf(m->folder, sizeof m->folder, "%s/lockstep-calibrate-XXXXXX", where);
    if (mkdtemp(m->folder) != NULL) return LS_OK;
    m->folder[0] = '\0';
    return ls_fail(err, LS_IO, "no folder for measurements in %s: %s", where, strerror(errno));
}

ls_status predict_measure_run(predict_measure *m, ls_err *err)
{
    runner r = {.m = m, .stop_fd = -1, .all = count_all(m)};
    struct signalfd_siginfo info;
    sigset_t asked, before;
    ls_status st = LS_OK;

    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    sigprocmask(SIG_BLOCK, &asked, &before);
    LS_TRY(make_folder(m, err));
    r.stop_fd = signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r.stop_fd < 0) LS_TRY(ls_fail(err, LS_IO, "signalfd: %s", strerror(errno)));
    st = r.all <= PREDICT_FILES ? run_all(&r, err)
                                : ls_fail(err, LS_INVALID, "%d measurements are too many", r.all);
out:
    /* The request was answered here: it must not end the program when it is let through. */
    while (r.stop_fd >= 0 && read(r.stop_fd, &info, sizeof info) == (ssize_t)sizeof info) continue;
    if (r.stop_fd >= 0) close(r.stop_fd);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}

void predict_measure_keep(predict_measure *m, ls_err *err)
{
    const ls_err why = *err;
    char path[sizeof m->folder + 16];

    if (m->done == 0 || m->n_files == 0 || m->folder[0] == '\0' || why.status == LS_CANCELLED) return;
    snprintf(path, sizeof path, "%s/log", m->folder);
    (void)unlink(path);
    *err = (ls_err){0};
    (void)ls_fail(err, why.status, "%s; what was measured is kept: `lockstep predict --calibrate %s/*.json`",
                  why.text, m->folder);
    m->folder[0] = '\0';
}

void predict_measure_release(predict_measure *m)
{
    DIR *folder = m->folder[0] != '\0' ? opendir(m->folder) : NULL;
    const struct dirent *e;

    while (folder != NULL && (e = readdir(folder)) != NULL)
        if (e->d_name[0] != '.') (void)unlinkat(dirfd(folder), e->d_name, 0);
    if (folder != NULL) closedir(folder);
    if (m->folder[0] != '\0') (void)rmdir(m->folder);
    m->folder[0] = '\0';
}
