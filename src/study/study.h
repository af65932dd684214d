/* study.h: a scaling study: one experiment on several rank counts, some times over, and what follows.
 *
 * A study is a folder (docs/scale.md):
 *
 *   study.json                       what is asked
 *   points/ranks-0002-repeat-03.json one result each, as the program printed it; written as a whole
 *   predicted.json                   what points were predicted to take (predicted.h); where that was asked
 * for logs/, runs/                     what the points said; run directories of studies that train
 *   report.html, *.svg, points.csv, table.md
 *
 * The way to one: ls_study_ask makes the question from an experiment, ls_study_open finds or makes its
 * folder, ls_study_run measures what is not there yet, ls_study_judge computes, ls_study_report writes the
 * report. ls_study_load takes the place of the first two for a folder that is there.  All bytes of the folder
 * are taken for bytes from outside.  Everything here is for one thread. */
#ifndef LS_STUDY_STUDY_H
#define LS_STUDY_STUDY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/text.h"
#include "bench/interval.h"
#include "config/experiment.h"

enum {
    LS_STUDY_COUNTS_MAX = 64,
    LS_STUDY_REPEATS_MAX = 99,
    LS_STUDY_RANKS_MAX = 1000000,
    LS_STUDY_PATH_MAX = 4096,
};

typedef enum ls_study_mode { LS_STUDY_WEAK, LS_STUDY_STRONG } ls_study_mode;

/* -- the question -----------------------------------------------------------------------------------------
 */

typedef struct ls_study {
    char dir[LS_STUDY_PATH_MAX]; /* "" until it is opened */
    const char *experiment;      /* as given: a file or a name */
    const char *name;            /* what the experiment calls itself */
    const char *const *settings; /* key=value, as given, but for the device */
    int n_settings;
    ls_study_mode mode;
    int counts[LS_STUDY_COUNTS_MAX]; /* ascending: of ranks, or of nodes where ranks_per_node > 0 */
    int n_counts;
    int ranks_per_node; /* 0: the points are rank counts of one machine */
    int repeats;
    int steps;          /* of a benchmark; 0: by `seconds` */
    double seconds;     /* 0: the benchmark's default */
    int threads;        /* of every rank of every point */
    const char *device; /* as the experiment or a setting says */
    bool train;
    int64_t batch;       /* samples that stay: of a rank (weak), of all ranks (strong) */
    char config[24];     /* hash of the resolved experiment, but for the device */
    const char *version; /* of the program, and where it ran */
    const char *host;
    double
        busy;  /* share of that machine's processors that others kept busy when it began, at most; 0: none */
    int cores; /* that it may use there */
    char predicted_by[24]; /* hash of the calibration that is asked for now (predicted.h); "": of none */
    ls_arena *arena;       /* of all texts */
} ls_study;

/* What a command line asks for. */
typedef struct ls_study_wish {
    const char *experiment;
    const char *const *settings;
    int n_settings;
    const char *counts; /* "1,2,4" */
    int ranks_per_node;
    const char *mode; /* "weak" or "strong" */
    int repeats;      /* 0: 3 */
    int steps;        /* 0: by time */
    double seconds;   /* 0: the benchmark's default */
    int threads;      /* 0: 1, so that a rank is the same in every point */
    bool train;
} ls_study_wish;

/* Loads the experiment as every point will have it: what cannot run is LS_INVALID before anything does.
 * Release in any case. */
ls_status ls_study_ask(ls_study *s, const ls_study_wish *w, ls_err *err) LS_MUST_CHECK;
void ls_study_release(ls_study *s); /* frees and zeroes */

/* The experiment as the points of `count` have it: with its ranks, its batch and all settings.  Release in
 * any case. */
ls_status ls_study_experiment(const ls_study *s, int count, ls_experiment *x, ls_err *err) LS_MUST_CHECK;

/* Fills s->busy, which takes a moment; to be called before the study is opened.  LS_STUDY_BUSY and more is
 * worth a warning. */
void ls_study_look_around(ls_study *s);
#define LS_STUDY_BUSY 0.1

/* study.json, and back.  The text is from outside: LS_DATA when it is no study.  Release in any case. */
ls_status ls_study_text(const ls_study *s, ls_text *out, ls_err *err) LS_MUST_CHECK;
ls_status ls_study_parse(ls_study *s, const char *text, size_t length, ls_err *err) LS_MUST_CHECK;

typedef enum ls_study_part {
    LS_STUDY_QUESTION = 1, /* experiment, mode, batch, threads, ... */
    LS_STUDY_LENGTH = 2,   /* how long a point is measured */
    LS_STUDY_MACHINE = 4,  /* host and its cores */
    LS_STUDY_VERSION = 8,  /* of the program, and what the experiment resolves to */
    LS_STUDY_SETTING = 16, /* key=value, as given */
} ls_study_part;

/* Which parts differ, and in `text` (may be NULL) what: "threads: 1 and 2; seed: 3 and not given".  Rank
 * counts and repeats are no difference: a study may grow; nor is the order in which settings were given. */
unsigned ls_study_differences(const ls_study *a, const ls_study *b, ls_text *text);

/* The folder of `s`: made with its study.json where there is none.  One that is there must belong to the same
 * question, and to the same calibration where s->predicted_by says one, else LS_INVALID with what differs and
 * what to do; its rank counts and repeats are joined with those of `s`.  `dir` NULL: studies/NAME-MODE.
 * `fresh`: one that is there is renamed out of the way, and its new name is left in `aside` (may be NULL,
 * else LS_STUDY_PATH_MAX bytes; "": there was none). */
ls_status ls_study_open(ls_study *s, const char *dir, bool fresh, char *aside, ls_err *err) LS_MUST_CHECK;
/* An existing one: `path` is its folder or its study.json.  Release in any case. */
ls_status ls_study_load(ls_study *s, const char *path, ls_err *err) LS_MUST_CHECK;
/* Whether `path` is a folder with a study.json, or such a file. */
bool ls_study_is_one(const char *path);

/* "rank" or "node", for texts; the ranks of a point. */
const char *ls_study_unit(const ls_study *s);
int ls_study_ranks(const ls_study *s, int count);
const char *ls_study_mode_name(ls_study_mode mode);
/* `lockstep scale ...`, which repeats it. */
void ls_study_command(const ls_study *s, ls_text *out);

/* -- points -----------------------------------------------------------------------------------------------
 */

/* What a result says.  NaN: it does not. */
typedef struct ls_study_point {
    int ranks, threads, cores; /* threads 0: a training run, which does not say; cores 0: unknown */
    int64_t steps;
    ls_spread rate, step_s;        /* samples/s of all ranks; step times */
    double mean_rate, error_rate;  /* mean and its standard error */
    int batches;                   /* behind that; 0: it does not say */
    double exposed_s, data_wait_s; /* of a step */
    double flop_s, peak_flop_s, peak_read_b_s;
    bool oversubscribed;
    bool trained;
    double solution_s; /* of a training run, from start to end */
    double score;      /* its metric, and what that is called */
    char score_name[64];
    char host[128], version[64];
} ls_study_point;

/* A line of `bench --json` or the summary of a training run.  LS_DATA when it is neither, or makes no sense.
 */
ls_status ls_study_point_parse(ls_study_point *p, const char *text, size_t length, ls_err *err) LS_MUST_CHECK;

/* The file of a point. */
ls_status ls_study_point_path(const ls_study *s, int count, int repeat, char path[LS_STUDY_PATH_MAX],
                              ls_err *err) LS_MUST_CHECK;

/* Results of all points, [count * repeats + repeat]; `there` false: not measured, or the file is no result.
 */
typedef struct ls_study_points {
    ls_study_point *of;
    bool *there;
    int n_there;
    ls_text damaged; /* a line for every file that is there and no result of its point */
} ls_study_points;

ls_status ls_study_points_load(ls_study_points *p, const ls_study *s, ls_err *err) LS_MUST_CHECK;
void ls_study_points_release(ls_study_points *p);

/* -- running ----------------------------------------------------------------------------------------------
 */

/* A point that is to be measured. */
typedef struct ls_study_job {
    const ls_study *study;
    int count, ranks, repeat; /* repeat from 1 */
    /* The command, ended by NULL, argv[0] "lockstep"; its last line on standard output is the result.  With
     * nodes it starts no ranks by itself (no -n): who runs it does. */
    const char *const *argv;
    const char *log; /* a file for what it says on standard error */
    /* Becomes readable when the user asks to stop (Ctrl-C, SIGTERM): a runner that waits polls it, ends what
     * it started, and returns LS_CANCELLED. */
    int stop_fd;
} ls_study_job;

/* Runs one point and appends its last line of standard output to `line`.  Points are run one after another,
 * in the order of ls_study_order.  Fails with LS_CANCELLED, or with why there is no result. */
typedef ls_status (*ls_study_runner)(void *ctx, const ls_study_job *job, ls_text *line, ls_err *err);
/* The default: a child process of this program, on this machine; `ctx` is not used. */
ls_status ls_study_run_child(void *ctx, const ls_study_job *job, ls_text *line, ls_err *err) LS_MUST_CHECK;

typedef enum ls_study_state {
    LS_STUDY_KEPT,    /* its result was there */
    LS_STUDY_DAMAGED, /* its file was there and is no result (`why`): it is measured again */
    LS_STUDY_BEGUN,
    LS_STUDY_DONE,
} ls_study_state;

/* What is told of every point. */
typedef struct ls_study_news {
    const ls_study_job *job; /* argv and log are set with BEGUN and DONE */
    ls_study_state state;
    int done, all;               /* points */
    const ls_study_point *point; /* with KEPT and DONE */
    const char *why;             /* with DAMAGED */
} ls_study_news;

typedef void (*ls_study_tell)(void *ctx, const ls_study_news *news);

typedef struct ls_study_how {
    ls_study_runner run; /* NULL: ls_study_run_child */
    void *run_ctx;
    ls_study_tell tell; /* may be NULL */
    void *tell_ctx;
} ls_study_how;

/* Measures every point that has no result yet.  LS_CANCELLED when the user asked to stop: what is measured
 * stays, and the next call goes on behind it. */
ls_status ls_study_run(const ls_study *s, const ls_study_how *how, ls_err *err) LS_MUST_CHECK;

/* The order of points: every repeat takes all counts, each in another order, so that a machine that grows
 * slower or faster meanwhile favours none.  Indices into counts of repeat `repeat` (from 1). */
void ls_study_order(int n_counts, int repeat, int *order);

/* -- results ----------------------------------------------------------------------------------------------
 */

/* Where an interval comes from (src/study/ratio.c). */
typedef enum ls_study_from {
    LS_STUDY_FROM_NOTHING, /* there is none */
    LS_STUDY_FROM_REPEATS, /* how this count's repeats scatter */
    LS_STUDY_FROM_ALL,     /* these, and the repeats of the study's other counts */
    LS_STUDY_FROM_STEPS,   /* the spread inside the runs, which is larger than that */
    LS_STUDY_FROM_ASSUMED, /* one repeat: LS_STUDY_ASSUMED, and the spread inside the run */
} ls_study_from;
const char *ls_study_from_name(ls_study_from from); /* "repeats", "all repeats", "steps", "assumed", "none" */

/* How much runs are taken to differ, relative, where a study has one repeat and cannot know. */
#define LS_STUDY_ASSUMED 0.1
/* Numbers of repeats for which it is said what they would be worth. */
#define LS_STUDY_ADVICE                                                                                      \
    {                                                                                                        \
        3, 5, 8                                                                                              \
    }
enum { LS_STUDY_ADVICE_N = 3 };

/* What an interval of an efficiency rests on; logarithmic, so relative.  NaN: not known. */
typedef struct ls_study_sure {
    ls_study_from from;
    double between, inside;             /* standard deviation of one repeat: of all kinds, of steps alone */
    double expected[LS_STUDY_ADVICE_N]; /* half the interval's width with so many repeats */
} ls_study_sure;

/* One rank count over all its repeats.  NaN where nothing was measured. */
typedef struct ls_study_row {
    int count, ranks, threads, repeats; /* repeats: measured ones */
    ls_spread rate;                     /* of all repeats together */
    double mean, error;                 /* of the repeats' medians, and the standard error of that */
    ls_interval efficiency;             /* against the smallest count; 95 % */
    ls_study_sure sure;                 /* of that */
    double step_s, compute_s, exposed_s, data_wait_s; /* medians; compute is the rest */
    double flop_s, peak_flop_s, peak_read_b_s;
    bool oversubscribed;           /* more threads than cores: its efficiency is no scaling */
    ls_interval solution_s, score; /* smallest, median, largest of the repeats */
    /* Predictions with their 90 % band (ls_predicted_judge); NaN: there is none, for the reason `unpredicted`
     * where one is known, which is the predictions'. */
    ls_interval predicted, predicted_step_s, predicted_efficiency; /* predicted: samples/s */
    double predicted_error;       /* predicted over measured samples/s, minus 1 */
    bool within, predicted_after; /* the measured median is in the band; it was made after the measurement */
    const char *unpredicted;
} ls_study_row;

typedef struct ls_study_results {
    ls_study_row rows[LS_STUDY_COUNTS_MAX];
    int n;
    bool complete; /* every point is there */
    bool any_oversubscribed;
    char score_name[64];                /* "": nothing was trained */
    const struct ls_predicted *by;      /* NULL: nothing was predicted */
    int compared, inside;               /* predicted and measured; of them within the band */
    double error_median, error_largest; /* of these, without sign */
    int largest_at;                     /* ranks */
} ls_study_results;

void ls_study_judge(const ls_study *s, const ls_study_points *p, ls_study_results *r);

/* The table for a terminal, and what is to be said of its intervals. */
ls_status ls_study_table(const ls_study *s, const ls_study_results *r, ls_text *out,
                         ls_err *err) LS_MUST_CHECK;
/* The object of `scale --json`; `report` may be NULL.  NULL: no memory, or a text that is no UTF-8. */
json_t *ls_study_json(const ls_study *s, const ls_study_results *r, const char *report);

/* Writes report.html, the charts, points.csv and table.md into the study's folder; `path` is that of the
 * page. */
ls_status ls_study_report(const ls_study *s, const ls_study_points *p, const ls_study_results *r,
                          char path[LS_STUDY_PATH_MAX], ls_err *err) LS_MUST_CHECK;
/* The same for a folder as it is, complete or not. */
ls_status ls_study_rebuild(const char *folder, char path[LS_STUDY_PATH_MAX], ls_err *err) LS_MUST_CHECK;

/* -- statistics -------------------------------------------------------------------------------------------
 */

/* The mixture of n series that are known by their percentiles only, each with the same weight; between the
 * percentiles, and beyond, a series is taken as uniform. */
ls_spread ls_study_pool(const ls_spread *of, int n);

/* What the steps inside a run leave open of its rate: a relative variance, and how well that is known. */
typedef struct ls_study_inside {
    double variance, df;
} ls_study_inside;

/* The ratio of two rates, repeat by repeat; starts as {0}. */
typedef struct ls_study_ratios {
    double log_ratio[LS_STUDY_REPEATS_MAX];
    int n;
    double inside, inside_df; /* the mean variance inside the runs */
} ls_study_ratios;

/* The ratio with its 95 % interval.  `others`: the variance of such a ratio as the other counts of the study
 * show it, NaN where they do not; `has_others`: they would with more repeats. */
ls_interval ls_study_ratio(const ls_study_ratios *r, double others, bool has_others, ls_study_sure *sure);

#endif
