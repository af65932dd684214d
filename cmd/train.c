/* train.c: `lockstep train`. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli.h"
#include "resume.h"
#include "runs.h"
#include "runs/reader.h"
#include "train/resume.h"

/* What all ranks of a run know. */
typedef struct job {
    const cli_args *args;
    const cli_ranks *ranks;
    const ls_experiment *before; /* settings so far of the run that goes on; NULL: not known */
    ls_run *run;                 /* of train: taken before ranks start, where this process starts rank 0 */
    bool resume;
} job;

static ls_last_words last_words; /* what summary.json is to say when the program is ended at once */

static void write_last_words(void)
{
    ls_last_words_write(&last_words);
}

/* The run's directory is taken before anything else: who may not have it need not wait for its data. */
static ls_status take_run(ls_run **out, const cli_args *args, const ls_experiment *x, ls_err *err)
{
    const char *name = ls_config_text(x->cfg, "name"), *path = args->run_dir;
    char newest[LS_PATH_MAX];
    ls_status st = LS_OK;

    *out = NULL;
    if (args->resume == NULL) return ls_run_create(out, name, path, err);
    if (args->resume[0] != '\0') path = args->resume;
    if (path == NULL) {
        LS_TRY(ls_runs_newest(newest, "runs", name, err));
        path = newest;
    }
    LS_TRY(ls_run_open(out, path, -1, err));
out:
    return st;
}

/* A failure that all ranks have found alike is told by rank 0, and the others leave when it has: whoever
 * started them ends the rest of a run soon after the first of them is gone. */
static int fail_together(const ls_place *place, ls_comm *comm, const ls_err *err)
{
    const bool alike = err->status == LS_DIVERGED || err->status == LS_DISAGREE;
    const bool waits = alike && place->rank != 0 && comm != NULL;
    int code = waits ? ls_launch_exit_code(err->status) : cli_fail_in_rank("train", place, err);

    if (alike && comm != NULL && ls_comm_barrier(comm, "the last words of rank 0", NULL) != LS_OK && waits)
        code = cli_fail_in_rank("train", place, err); /* rank 0 was elsewhere: it has not said this */
    return code;
}

/* One rank of a training run: the place where launcher and trainer meet. */
static int train_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    const job *j = arg;
    ls_train_options o = cli_train_options(j->args, place, comm);
    ls_run *run = NULL; /* where mpirun or srun started rank 0 */
    json_t *summary = NULL;
    bool stopped = false;
    ls_err err = {0};
    ls_status st = LS_OK;

    o.last_words = &last_words;
    o.resume = j->resume;
    o.before = j->before;
    ls_launch_watch_signals(write_last_words); /* before anything is made */
    if (place->rank != 0) {
        ls_run_close(j->run); /* only rank 0 holds it, beside the launcher */
    } else if (j->run != NULL) {
        o.run = j->run;
    } else {
        st = take_run(&run, j->args, &j->ranks->experiment, &err);
        if (st != LS_OK && comm != NULL) ls_comm_abort(comm, err.text);
        o.run = run;
    }
    if (st != LS_OK) return cli_fail_in_rank("train", place, &err);
    if (o.run != NULL) ls_run_enter(o.run);
    st = ls_train(&j->ranks->experiment, &o, &summary, &stopped, &err);
    if (st != LS_OK && o.run != NULL)
        ls_run_settle(o.run, st == LS_CANCELLED ? "killed" : "failed", err.text);
    ls_run_close(run);
    if (j->args->json && summary != NULL && place->rank == 0) {
        json_object_set_new(summary, "event", json_string("summary"));
        cli_print_json_take(json_incref(summary));
    }
    json_decref(summary);
    if (st != LS_OK) return fail_together(place, comm, &err);
    return stopped ? CLI_STOPPED : CLI_DONE;
}

/* A rank can only be started again by somebody who is left: one rank gets a launcher, too. */
static void watch_over(cli_ranks *ranks)
{
    if (ranks->start.kind == LS_START_ALONE) ranks->start.kind = LS_START_LOCAL;
    if (ranks->start.kind != LS_START_LOCAL)
        ls_log(LS_LOG_WARN,
               "max_restarts has no effect with ranks that %s started; start the run again with --resume",
               ranks->start.place.how);
}

/* Whether rank 0 is this process, or started by it: then this process owns the run. */
static bool owns_run(const ls_start *start)
{
    return start->kind != LS_START_RANK && start->place.rank == 0;
}

/* The last word about a run whose writer may have been lost before it could say it. */
static void settle(ls_run *run, int code, const ls_launch_end *end)
{
    const char *why = end->why[0] != '\0' ? end->why : code == LS_EXIT_LOST ? "a rank was lost" : NULL;

    if (run == NULL || code == LS_EXIT_DONE || code == LS_EXIT_STOPPED) return;
    ls_run_settle(run, code > 128 ? "killed" : "failed", why);
}

/* Trains once more from the last checkpoint, if there is one; *code is what became of it.  False: it is not
 * to be, and *code stands. */
static bool restart(job *j, cli_ranks *ranks, int64_t k, int64_t restarts, double wait, int *code)
{
    ls_err err = {0};
    int asked;

    if (ls_run_renew(j->run, &err) != LS_OK) {
        *code = cli_fail("train", &err);
        return false;
    }
    j->resume = ls_run_has_checkpoint(j->run);
    ls_log(LS_LOG_WARN, "restart %lld of %lld, from the %s, in %g s", (long long)k, (long long)restarts,
           j->resume ? "last checkpoint" : "beginning: there is no checkpoint yet", wait);
    ls_run_enter(j->run); /* nobody else does while there are no ranks */
    asked = ls_launch_rest(wait);
    ls_run_leave(j->run);
    if (asked != 0) {
        ls_log(LS_LOG_WARN, "asked to stop: not started again; --resume goes on");
        *code = 128 + asked;
        return false;
    }
    *code = cli_ranks_run(ranks, "train", train_rank, j);
    return true;
}

/* A run that loses ranks again and again is not to keep a machine busy with its starting: each wait is twice
 * the one before, unless the attempt lasted. */
static int restart_until_done(job *j, cli_ranks *ranks, int64_t restarts, double begun, int code)
{
    static const double first_s = 0.5, most_s = 60, lasting_s = 60;
    double wait = first_s;

    for (int64_t k = 1; code == LS_EXIT_LOST && k <= restarts; k++) {
        if (ranks->end.stop_number != 0) {
            ls_log(LS_LOG_WARN, "a stop was asked for as well: not started again; --resume goes on");
            break;
        }
        if (ls_clock_seconds() - begun > lasting_s) wait = first_s;
        begun = ls_clock_seconds() + wait;
        if (!restart(j, ranks, k, restarts, wait, &code)) break;
        wait = wait * 2 < most_s ? wait * 2 : most_s;
    }
    return code;
}

/* There is nothing to keep. */
static int stopped_early(void)
{
    ls_log(LS_LOG_WARN, "stopped on request before the first step; nothing was trained");
    return CLI_STOPPED;
}

/* Trains; after the loss of a rank again, from the last checkpoint if there is one. */
static int train_on(const cli_args *args, cli_ranks *ranks, const ls_experiment *before)
{
    const int64_t restarts = ls_config_int(ranks->experiment.cfg, "max_restarts");
    job j = {.args = args, .ranks = ranks, .before = before, .resume = args->resume != NULL};
    const double begun = ls_clock_seconds();
    ls_err err = {0};
    int code;

    /* Who reads along may leave; the run goes on, and its end says that its words were lost. */
    signal(SIGPIPE, SIG_IGN);
    /* MPI waits for all its ranks without a look at ours: until it has them, signals end this one. */
    if (ranks->start.kind == LS_START_RANK) ls_launch_unwatch_signals();
    if (restarts > 0) watch_over(ranks);
    if (owns_run(&ranks->start) && take_run(&j.run, args, &ranks->experiment, &err) != LS_OK)
        return err.status == LS_CANCELLED ? stopped_early() : cli_fail("train", &err);
    code = cli_ranks_run(ranks, "train", train_rank, &j);
    if (ranks->start.kind == LS_START_LOCAL) code = restart_until_done(&j, ranks, restarts, begun, code);
    settle(j.run, code, &ranks->end);
    ls_run_close(j.run);
    return code;
}

/* The value as JSON has it; what is no number and no truth value is a text. */
static json_t *setting_json(const ls_setting *s)
{
    char buf[LS_SETTING_SHOW_MAX];
    const char *text = ls_setting_show(s, buf);
    const bool plain = s->kind == LS_SETTING_INT || s->kind == LS_SETTING_REAL || s->kind == LS_SETTING_BOOL;
    json_t *value = plain ? json_loads(text, JSON_DECODE_ANY, NULL) : json_string(text);

    return value != NULL ? value : runs_text_json(text);
}

static void print_experiment_json(const ls_experiment *x)
{
    json_t *settings = json_object();

    for (int i = 0; i < ls_config_count(x->cfg); i++) {
        const ls_setting s = ls_config_at(x->cfg, i);
        json_object_set_new(settings, s.key, setting_json(&s));
    }
    cli_print_json_take(json_pack("{s:s, s:o}", "event", "dry_run", "settings", settings));
}

int cli_train(const cli_args *args)
{
    cli_ranks ranks = {0};
    cli_resume resume = {.args = *args, .experiment = args->model};
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    ls_launch_watch_signals(NULL); /* from here on a request is answered as one */
    if (args->resume != NULL) LS_TRY(cli_resume_open(&resume, args, &err));
    LS_TRY(cli_ranks_open(&ranks, resume.experiment, true, &resume.args, &err));
    LS_TRY(ls_experiment_settle_paths(&ranks.experiment, &err));
    if (resume.ignored.length > 0 && !resume.ignored.failed && ranks.start.place.rank == 0)
        ls_log(LS_LOG_WARN, "the run's own settings hold, not those of %s: %s; key=value changes them",
               args->model, resume.ignored.data);
    if (resume.has_checkpoint) LS_TRY(ls_resume_check(&resume.before, &ranks.experiment, &err));
    if (args->dry_run && args->json)
        print_experiment_json(&ranks.experiment);
    else if (args->dry_run)
        ls_experiment_write(&ranks.experiment, stdout);
    else if (*ls_launch_stop_requests() > 0)
        code = stopped_early();
    else
        code = train_on(&resume.args, &ranks, resume.known ? &resume.before : NULL);
out:
    cli_ranks_release(&ranks);
    cli_resume_release(&resume);
    return st == LS_OK ? code : cli_fail("train", &err);
}
