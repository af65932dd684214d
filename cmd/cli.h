/* cli.h: what the commands of the program share: their table, options, and the plan they work on. */
#ifndef LS_CMD_CLI_H
#define LS_CMD_CLI_H

#include <jansson.h>

#include "config/experiment.h"
#include "launch/launch.h"
#include "lockstep/trial.h"
#include "runs/run.h"
#include "submit/submit.h"
#include "train/outline.h"
#include "train/train.h"

/* Exit codes (docs/cli.md). */
enum {
    CLI_DONE = LS_EXIT_DONE,
    CLI_FAILED = LS_EXIT_FAILED,
    CLI_USAGE = LS_EXIT_INVALID,
    CLI_DAMAGED = LS_EXIT_DAMAGED,
    CLI_LOST = LS_EXIT_LOST,
    CLI_DISAGREED = LS_EXIT_DISAGREED,
    CLI_STOPPED = LS_EXIT_STOPPED
};

#define CLI_MAX_THREADS 1024

/* Which commands an option belongs to. */
enum {
    CLI_PLAN = 1,
    CLI_BENCH = 2,
    CLI_INFO = 4,
    CLI_DATA = 8,
    CLI_TRAIN = 16,
    CLI_EVAL = 32,
    CLI_CKPT = 64,
    CLI_NEW = 128,
    CLI_SCALE = 256,
    CLI_SUBMIT = 512,
    CLI_REPORT = 1024,
    CLI_RUNS = 2048,
    CLI_INFER = 4096,
    CLI_PREDICT = 8192,
    CLI_SECRET = 1 << 20,
    CLI_ALL = 16383 | CLI_SECRET
};

/* Values of an option that may be given several times. */
enum { CLI_LIST_MAX = 16 };
typedef struct cli_list {
    const char *of[CLI_LIST_MAX];
    int n;
} cli_list;

typedef struct cli_args {
    const char *model;     /* experiment: a file, its name or a model's; of `ckpt`, `data`: what to do; of
                              `new`: the name */
    const char **settings; /* key=value, as given; of `ckpt`, `report`: the words after the first,
                              of `scale --compare`: the second study, of `plan --diff` and `bench --compare`:
                              the second one */
    int n_settings;
    const char *device; /* NULL: not given; else it is among the settings, too */
    int threads, ranks, steps;
    double seconds;
    bool json, help, profile, list_settings, tune;
    const char *graph;             /* of plan: a file for the picture */
    const char *strategy, *memory; /* of plan and predict: which, and what a rank may take */
    bool passes;                   /* of plan */
    const char *format;            /* of bench: NULL, or whose layout */
    const char *export;            /* of bench: a file for the parts of the step */
    bool collectives;              /* of bench: exchanges instead of steps, of these */
    const char *sizes;             /* lengths: "4KiB,1MiB" */
    bool calibrate, script;        /* of predict: measure; print the script of a job that does */
    const char *batches;           /* "16,32,64" */
    const char *network, *machine; /* of predict: presets or files; network of scale, too */
    const char *predict;           /* of scale: a calibration */
    cli_list measured;             /* of predict: files of results, folders of studies */
    const char *algorithm, *engine, *placement;
    double step_time; /* seconds that a rank computes in a step; 0: what its nodes take */
    /* Of predict: a whole run, what it may take, and what stops it. */
    const char *until, *deadline, *mtbf, *checkpoint, *restart;
    cli_list study;
    int samples;
    double price, budget;
    bool list;                      /* of predict: presets */
    const char *against;            /* of bench: a setting in which a second run differs */
    int beside;                     /* of bench: processes that take the same steps meanwhile */
    int turn;                       /* of bench: steps in a row of each of the two; 0: as usual */
    const char *dir;                /* of new, scale: the folder to write */
    bool cflags;                    /* of info: what a compiler needs for a plug-in, and nothing else */
    const char *rank_counts, *mode; /* of scale, plan and predict: "1,2,4"; weak or strong */
    int repeats;
    bool train, fresh, compare_two, force;
    const char *out;        /* of report, plan, runs compare: the folder to write; of infer, predict: the file
                             */
    const char *experiment; /* of eval, infer: of a file of weights, or in the place of a run's own */
    bool watch, open;       /* of report */
    /* Of runs. */
    cli_list where; /* conditions */
    const char *sort, *rank;
    bool csv, tail, yes, html, wide;
    double timeout;
    const char *split, *output; /* of infer: which samples, which output; NULL: not given */
    bool probabilities;
    const char *run_dir;
    const char *resume; /* NULL: no; "": the newest run, with a model of its name; else a run directory */
    bool quiet, dry_run;
    /* Where ranks start (launch/launch.h); `ranks` 0: not given, else it is among the settings, too. */
    const char *bind, *node_rank, *master;
    int nodes;
    double join_timeout;
    bool insecure;
    char ranks_setting[24], device_setting[48], memory_setting[64];
    /* Of submit; `nodes` and `threads` as well. */
    int ranks_per_node;      /* of scale as well */
    const char *node_counts; /* of scale and predict: "1,2,4" */
    const char *time, *partition, *account, *qos, *constraint, *mem, *job_name, *scheduler;
    cli_list slurm, setup; /* options of sbatch; lines of shell */
    const char *follow;    /* NULL: not given; "": the job that is submitted; else a job */
    bool no_follow;
    const char *cancel; /* a job */
} cli_args;

typedef struct cli_command {
    const char *name;
    unsigned bit;
    const char *usage; /* what follows the name */
    const char *about;
    int (*run)(const cli_args *args); /* returns the exit code */
} cli_command;

/* Every command, ended by a NULL name (main.c: the only list). */
extern const cli_command cli_commands[];

int cli_plan(const cli_args *args);
ls_status cli_plan_check(const cli_args *args, ls_err *err) LS_MUST_CHECK; /* its words */
/* -n of plan: a number, which becomes args->ranks, or several: 1,2,4 or 1..1024. */
ls_status cli_plan_counts(cli_args *args, ls_err *err) LS_MUST_CHECK;
/* Numbers of ranks as a word of `option`: 1,2,4 or 1..1024, which doubles; in the order in which they are
 * written, each once, at most `most`. */
ls_status cli_counts(const char *option, const char *text, int *counts, int most, int *n,
                     ls_err *err) LS_MUST_CHECK;
/* The strategies that --strategy means ("all", a name, or NULL: the setting), separated by spaces; a copy,
 * since settings change while they are tried. */
ls_status cli_strategies(ls_config *cfg, const char *wanted, char *out, size_t size,
                         ls_err *err) LS_MUST_CHECK;
int cli_bench(const cli_args *args);
ls_status cli_bench_check(const cli_args *args, ls_err *err) LS_MUST_CHECK; /* its words */
int cli_predict(const cli_args *args);
ls_status cli_predict_check(const cli_args *args, ls_err *err) LS_MUST_CHECK; /* its words */
int cli_info(const cli_args *args);
int cli_train(const cli_args *args);
/* Whether the word after --resume is the run that it goes on with: a folder, or what can be nothing else, for
 * it is neither an option nor a setting nor an experiment. */
bool cli_resume_takes(const char *word);
int cli_eval(const cli_args *args);
int cli_infer(const cli_args *args);
int cli_data(const cli_args *args);
void cli_data_help(void); /* the settings of `data` */
int cli_new(const cli_args *args);
int cli_report(const cli_args *args);
int cli_runs(const cli_args *args);
ls_status cli_runs_check(const cli_args *args, ls_err *err) LS_MUST_CHECK; /* its words */
void cli_runs_help(void);
int cli_scale(const cli_args *args);
ls_status cli_scale_check(const cli_args *args, ls_err *err) LS_MUST_CHECK; /* its words */
int cli_ckpt(const cli_args *args);
ls_status cli_ckpt_check(const cli_args *args, ls_err *err) LS_MUST_CHECK; /* its words */
void cli_ckpt_help(void);
int cli_secret(const cli_args *args);
ls_status cli_secret_check(const cli_args *args, ls_err *err) LS_MUST_CHECK; /* its words */
int cli_submit(const cli_args *args);
bool cli_submit_is_of_job(const cli_args *args); /* it is about one that was submitted before */
/* What jobs ask of the cluster, of `submit` and of `scale --nodes`; and whether anything of that is given. */
ls_status cli_resources(ls_submit_resources *w, const cli_args *args, ls_err *err) LS_MUST_CHECK;
bool cli_has_resources(const cli_args *args);

/* Fills `args` from what follows the command's name.  args->settings is the caller's to ls_free. */
ls_status cli_parse(const cli_command *c, int argc, char **argv, cli_args *args, ls_err *err) LS_MUST_CHECK;
/* Whether the command's option `name` was given, as far as its field tells. */
bool cli_is_given(const cli_args *args, unsigned command, const char *name);
/* The command's help, or that of a `topic`: "settings", or an experiment, whose model's settings follow.
 * Returns the exit code. */
int cli_help(const cli_command *c, const char *topic);
void cli_help_all(void);
/* Whether key=value may follow. */
bool cli_takes_settings(const cli_command *c);
/* Writes to `buf` what an option that there is not may mean as a setting (hints.c).  `sure`: only a name that
 * is known, else only one that is spelt alike; `value` may be NULL.  False: nothing is known. */
bool cli_hint_option(const cli_command *c, const char *name, const char *value, bool sure, char *buf,
                     size_t size);
/* What does here what command `name` does elsewhere, or that it is not in this version; NULL: nothing is
 * known. */
const char *cli_hint_command(const char *name);
/* Prints `text` from `column` on, in lines of at most 79 columns that begin there; the cursor is at `at`. */
void cli_print_wrapped(const char *text, int at, int column);
/* All settings with defaults and help. */
int cli_help_settings(void);
/* The settings of one model. */
void cli_help_model(const ls_trial *model);

/* An option as the manual and the completion of shells need it. */
typedef struct cli_option {
    const char *name, *alias, *arg, *help; /* alias and arg may be NULL */
    unsigned commands;
    bool maybe; /* the value may be left out */
} cli_option;
/* Option number i; false after the last. */
bool cli_option_at(int i, cli_option *out);
/* The name of setting number i of `lockstep data`, or NULL after the last. */
const char *cli_data_setting(int i);

/* The program: what main does. */
int cli_main(int argc, char **argv);
/* Prints the error and returns the exit code that belongs to it. */
int cli_fail(const char *command, const ls_err *err);

/* -- commands on several ranks (ranks.c) -------------------------------------------------------------------
 */

/* The experiment of the command line; `ranks` > 0 takes the place of its own setting.  Release in any case;
 * one that was loaded before is released here. */
ls_status cli_load(ls_experiment *x, const char *name, const cli_args *args, int ranks,
                   ls_err *err) LS_MUST_CHECK;

typedef struct cli_ranks {
    ls_launch_options options;
    ls_start start;
    ls_experiment experiment; /* with `ranks` as the run will have */
    ls_launch_end end;        /* of a launcher, after cli_ranks_run */
} cli_ranks;

/* Loads `experiment` (NULL: the settings are all there is) and finds out how many ranks there will be, and
 * who starts them.  `keep_ranks`: the experiment's own setting counts where the command line says nothing.
 * Release in any case. */
ls_status cli_ranks_open(cli_ranks *r, const char *experiment, bool keep_ranks, const cli_args *args,
                         ls_err *err) LS_MUST_CHECK;
/* The same for what needs no experiment: `experiment` stays empty. */
ls_status cli_ranks_bare(cli_ranks *r, const cli_args *args, ls_err *err) LS_MUST_CHECK;
void cli_ranks_release(cli_ranks *r);
/* LS_INVALID, with the reason and a way out, where `device`, the experiment's, cannot be used on this
 * machine. To be called before anything is created. */
ls_status cli_device_check(const cli_args *args, const char *device, ls_err *err) LS_MUST_CHECK;
/* Runs `rank_main` in every rank and returns the run's exit code. */
int cli_ranks_run(const cli_ranks *r, const char *command, ls_rank_main rank_main, void *arg);
/* What the command line says of how a rank trains or evaluates. */
ls_train_options cli_train_options(const cli_args *args, const ls_place *place, ls_comm *comm);
/* cli_fail of a rank: says nothing of a lost rank where the launcher does, and nothing where another rank
 * tells the same (an empty text: train/team.h). */
int cli_fail_in_rank(const char *command, const ls_place *place, const ls_err *err);

/* -- given weights (weights.c) ----------------------------------------------------------------------------
 */

/* What RUN|CHECKPOINT|FILE.safetensors means. */
typedef struct cli_weights {
    char experiment[LS_PATH_MAX]; /* a file, the name of one, or a model; "": model.trial is among the
                                     settings */
    char weights[LS_PATH_MAX];    /* a checkpoint, or the file */
    char run[LS_PATH_MAX];        /* the run directory where one was given, else "" */
} cli_weights;

/* Finds the weights of the command line and opens ranks for them, which are to be released in any case.
 * LS_INVALID, saying what to add, where the experiment of a file of weights is not known. */
ls_status cli_weights_open(const cli_args *args, cli_weights *w, cli_ranks *ranks, ls_err *err) LS_MUST_CHECK;
/* Adds to `o` which checkpoint of a run it is: "weights" (best, last or a name) and "step". */
void cli_weights_describe(const cli_weights *w, json_t *o);

/* A model compiled for a device: one rank's plans, with as many ranks as the experiment says; not to be run.
 */
typedef struct cli_experiment {
    ls_experiment experiment;
    const ls_trial *trial; /* this and the next two are the experiment's */
    ls_config *cfg;
    const char *name;
    int ranks;
    ls_outline outline;
} cli_experiment;

/* The settings alone: trial and cfg are filled. */
ls_status cli_experiment_configure(cli_experiment *x, const cli_args *args, ls_err *err) LS_MUST_CHECK;
/* Everything.  Release in any case. */
ls_status cli_experiment_open(cli_experiment *x, const cli_args *args, ls_err *err) LS_MUST_CHECK;
void cli_experiment_release(cli_experiment *x);

/* One line on standard output; takes over `object`. */
void cli_print_json_take(json_t *object);

#endif
