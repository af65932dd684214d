/* scale.c: `lockstep scale`: a scaling study, measured, shown and reported; and two of them compared. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/output.h"
#include "base/units.h"
#include "cli.h"
#include "scale_predict.h"
#include "study/compare.h"
#include "study/jobs.h"
#include "study/study.h"

/* -- progress ---------------------------------------------------------------------------------------------
 */

typedef struct screen {
    bool json, live; /* live: a line that is overwritten shows the point that is being measured */
    int kept, done, all;
} screen;

static void show_point(const screen *sc, const ls_study_news *n)
{
    const ls_study *s = n->job->study;
    const int count = n->job->count;
    char lo[LS_UNITS_TEXT], mid[LS_UNITS_TEXT], hi[LS_UNITS_TEXT];

    if (sc->live) fprintf(stderr, "\r\033[K");
    printf("[%*d/%d] %d %s%s, repeat %d: %s samples/s (%s to %s)%s\n", n->all > 9 ? 2 : 1, n->done, n->all,
           count, ls_study_unit(s), count == 1 ? "" : "s", n->job->repeat,
           ls_units_rate(n->point->rate.p50, mid), ls_units_rate(n->point->rate.p16, lo),
           ls_units_rate(n->point->rate.p84, hi), n->state == LS_STUDY_KEPT ? ", measured before" : "");
    ls_output_flush();
}

static void show_point_json(const ls_study_news *n)
{
    const ls_study_point *p = n->point;

    cli_print_json_take(json_pack("{s:s, s:i, s:i, s:i, s:i, s:b, s:f, s:f}", "event", "point", "ranks",
                                  p->ranks, "repeat", n->job->repeat, "done", n->done, "all", n->all,
                                  "measured_before", (int)(n->state == LS_STUDY_KEPT), "samples_per_s",
                                  p->rate.p50, "step_s", p->step_s.p50));
}

static void tell(void *ctx, const ls_study_news *n)
{
    screen *sc = ctx;

    sc->done = n->done;
    sc->all = n->all;
    switch (n->state) {
    case LS_STUDY_DAMAGED:
        fprintf(stderr, "lockstep scale: %s; the point is measured again\n", n->why);
        return;
    case LS_STUDY_BEGUN:
        if (sc->live)
            fprintf(stderr, "\r\033[K[%d/%d] %d %s%s, repeat %d ...", n->done + 1, n->all, n->job->count,
                    ls_study_unit(n->job->study), n->job->count == 1 ? "" : "s", n->job->repeat);
        return;
    default: break;
    }
    sc->kept += n->state == LS_STUDY_KEPT;
    if (sc->json)
        show_point_json(n);
    else
        show_point(sc, n);
}

/* -- points as jobs ---------------------------------------------------------------------------------------
 */

/* Where the job of the point is that is waited for. */
static void show_job(void *ctx, const ls_study_job *point, const char *id, const ls_submit_job *job)
{
    const screen *sc = ctx;

    if (!sc->live) return;
    fprintf(stderr, "\r\033[K[%d/%d] %d node%s, repeat %d: job %s %s%s%s ...", sc->done + 1, sc->all,
            point->count, point->count == 1 ? "" : "s", point->repeat, id,
            job->phase == LS_JOB_WAITS  ? "waits"
            : job->phase == LS_JOB_RUNS ? "runs on "
                                        : "has ended",
            job->phase == LS_JOB_RUNS ? job->nodes : "",
            job->phase == LS_JOB_WAITS && strcmp(job->reason, "Dependency") == 0 ? " for the one before"
                                                                                 : "");
}

static ls_status submit_points(ls_study_jobs **jobs, const ls_study *s, const ls_study_jobs_wish *w,
                               ls_study_how *how, const screen *sc, ls_err *err)
{
    int n = 0;
    const ls_status st = ls_study_jobs_submit(jobs, s, w, &n, err);

    how->run = ls_study_run_job;
    how->run_ctx = *jobs;
    if (st == LS_OK && !sc->json && n > 0) printf("jobs          %d, which run one after another\n", n);
    ls_output_flush();
    return st;
}

/* -- the study --------------------------------------------------------------------------------------------
 */

static ls_status show_results(const ls_study *s, bool json, ls_err *err)
{
    char report[LS_STUDY_PATH_MAX];
    ls_study_points p = {0};
    ls_study_results r;
    ls_predicted *said = ls_alloc(LS_MEM_CLI, sizeof *said);
    ls_text table = {0};
    bool there;
    ls_status st = LS_OK;

    if (said == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory"));
    LS_TRY(ls_study_points_load(&p, s, err));
    LS_TRY(ls_predicted_load(said, s, &there, err));
    ls_study_judge(s, &p, &r);
    if (there) ls_predicted_judge(s, said, &r);
    LS_TRY(ls_study_report(s, &p, &r, report, err));
    if (json) {
        json_t *o = ls_study_json(s, &r, report);
        if (o == NULL) LS_TRY(ls_fail(err, LS_INVALID, "%s: the result cannot be written as JSON", s->dir));
        cli_print_json_take(o);
        goto out;
    }
    LS_TRY(ls_study_table(s, &r, &table, err));
    printf("\n%s scaling of %s, %lld samples per %s, on %s (%d cores)\n%s", ls_study_mode_name(s->mode),
           s->name, (long long)s->batch, s->mode == LS_STUDY_WEAK ? "rank" : "update of all ranks", s->host,
           s->cores, table.data);
    if (r.any_oversubscribed)
        printf(
            "oversubscribed: more threads than cores; ranks take turns, and that efficiency is no scaling\n");
    printf("report        %s\n", report);
out:
    ls_text_release(&table);
    ls_study_points_release(&p);
    ls_free(said);
    return st;
}

/* Nothing is lost: every point was kept when it was measured. */
static int stopped(const ls_study *s, const screen *sc)
{
    if (sc->live) fprintf(stderr, "\r\033[K");
    fprintf(
        stderr,
        "lockstep scale: stopped; %d of %d points are measured in %s; the same command goes on from there\n",
        sc->done, sc->all, s->dir);
    return CLI_STOPPED;
}

static int measure(const cli_args *args)
{
    const ls_study_wish wish = {.experiment = args->model,
                                .settings = args->settings,
                                .n_settings = args->n_settings,
                                .counts = args->node_counts != NULL ? args->node_counts : args->rank_counts,
                                .ranks_per_node = args->ranks_per_node,
                                .mode = args->mode,
                                .repeats = args->repeats,
                                .steps = args->steps,
                                .seconds = args->seconds,
                                .threads = args->threads,
                                .train = args->train};
    screen sc = {.json = args->json, .live = !args->json && isatty(STDERR_FILENO)};
    ls_study_jobs_wish jobs_wish = {.state = show_job, .ctx = &sc};
    ls_study_how how = {.tell = tell, .tell_ctx = &sc};
    ls_study_jobs *jobs = NULL;
    scale_predict *predict = NULL;
    char aside[LS_STUDY_PATH_MAX];
    ls_study s = {0};
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(cli_resources(&jobs_wish.want, args, &err));
    LS_TRY(ls_study_ask(&s, &wish, &err));
    /* Nodes of a cluster may have what this machine has not. */
    if (args->node_counts == NULL) LS_TRY(cli_device_check(args, s.device, &err));
    if (args->node_counts != NULL) LS_TRY(ls_study_jobs_fit(&s, &jobs_wish, &err));
    LS_TRY(scale_predict_open(&predict, args, &s, &err));
    ls_study_look_around(&s);
    if (s.busy >= LS_STUDY_BUSY)
        ls_log(
            LS_LOG_WARN,
            "others keep %.0f %% of this machine's processors busy: rates will be lower, and intervals wider",
            100 * s.busy);
    LS_TRY(ls_study_open(&s, args->dir, args->fresh, aside, &err));
    if (aside[0] != '\0') fprintf(stderr, "lockstep scale: what was in %s is now in %s\n", s.dir, aside);
    if (predict != NULL) LS_TRY(scale_predict_write(predict, &s, &err));
    if (args->node_counts != NULL) LS_TRY(submit_points(&jobs, &s, &jobs_wish, &how, &sc, &err));
    st = ls_study_run(&s, &how, &err);
    /* At once: jobs that wait for a study which has ended would run for nobody. */
    if (st != LS_OK) {
        ls_study_jobs_close(jobs);
        jobs = NULL;
    }
    if (st == LS_CANCELLED) {
        code = stopped(&s, &sc);
        st = LS_OK;
        goto out;
    }
    if (st != LS_OK && sc.live) fprintf(stderr, "\n");
    if (st != LS_OK) goto out;
    LS_TRY(show_results(&s, args->json, &err));
out:
    ls_study_jobs_close(jobs);
    scale_predict_close(predict);
    ls_study_release(&s);
    return st == LS_OK ? code : cli_fail("scale", &err);
}

/* -- two studies ------------------------------------------------------------------------------------------
 */

static int compare(const cli_args *args)
{
    ls_comparison c = {0};
    ls_text table = {0};
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_study_compare(&c, args->model, args->settings[0], args->force, &err));
    if (args->json) {
        json_t *o = ls_comparison_json(&c);
        if (o == NULL) LS_TRY(ls_fail(&err, LS_INVALID, "the comparison cannot be written as JSON"));
        cli_print_json_take(o);
        goto out;
    }
    LS_TRY(ls_comparison_table(&c, &table, &err));
    printf("A             %s\nB             %s\ndiffer in     %s\n\n%s\n", c.a.dir, c.b.dir,
           c.differences.data != NULL ? c.differences.data : "nothing that is recorded", table.data);
    if (c.parts & LS_STUDY_QUESTION)
        printf("warning       they ask different questions, and were compared all the same (--force)\n");
    printf("verdict       %s: B has %.3f times the rate of A, 95 %% [%.3f, %.3f]\n",
           ls_verdict_text(c.all.verdict), c.all.ratio.mid, c.all.ratio.lo, c.all.ratio.hi);
out:
    ls_text_release(&table);
    ls_comparison_release(&c);
    return st == LS_OK ? CLI_DONE : cli_fail("scale", &err);
}

ls_status cli_scale_check(const cli_args *args, ls_err *err)
{
    if (args->compare_two && args->device != NULL)
        return ls_fail(err, LS_INVALID, "--compare A B measures nothing: leave --device out");
    if (args->compare_two && (args->model == NULL || args->n_settings != 1))
        return ls_fail(err, LS_INVALID, "--compare takes two studies: their folders, or their study.json");
    if (args->compare_two && args->predict != NULL)
        return ls_fail(err, LS_INVALID, "--compare A B measures nothing: leave --predict out");
    if (args->compare_two) return LS_OK;
    if (args->network != NULL && args->predict == NULL)
        return ls_fail(
            err, LS_INVALID,
            "--network says what lies between ranks of a prediction: --predict CALIBRATION is missing");
    if (args->force) return ls_fail(err, LS_INVALID, "--force is for --compare A B");
    if (args->node_counts != NULL && args->rank_counts != NULL)
        return ls_fail(err, LS_INVALID,
                       "--ranks measures on this machine, --nodes as jobs of Slurm: leave one of them out");
    if (args->node_counts != NULL && args->ranks_per_node == 0)
        return ls_fail(err, LS_INVALID, "how many ranks on each node?  --ranks-per-node R");
    if (args->node_counts == NULL && (args->ranks_per_node > 0 || cli_has_resources(args)))
        return ls_fail(err, LS_INVALID,
                       "--ranks-per-node, --time, --partition, --account, --qos, --constraint, --mem, "
                       "--slurm and --setup are for jobs "
                       "of Slurm: say --nodes 1,2,4 instead of --ranks");
    for (int i = 0; i < args->n_settings; i++)
        if (strchr(args->settings[i], '=') == NULL)
            return ls_fail(err, LS_INVALID, "\"%s\" is one word too many; settings are written key=value",
                           args->settings[i]);
    return LS_OK;
}

int cli_scale(const cli_args *args)
{
    return args->compare_two ? compare(args) : measure(args);
}
