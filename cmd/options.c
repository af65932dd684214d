/* options.c: one table of options, from which parsing and help both come. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli.h"

/* MAYBE: a text that may be left out; it follows '='.  LIST: one more text each time. */
typedef enum option_kind { FLAG, INT, REAL, TEXT, MAYBE, LIST } option_kind;

typedef struct option {
    const char *name, *alias; /* alias: NULL or "-n" */
    option_kind kind;
    size_t field; /* of cli_args */
    unsigned commands;
    const char *arg, *help;
} option;

#define FIELD(f) offsetof(cli_args, f)

static const option options[] = {
    {"--device", NULL, TEXT, FIELD(device),
     CLI_PLAN | CLI_BENCH | CLI_TRAIN | CLI_EVAL | CLI_INFER | CLI_SCALE | CLI_SUBMIT | CLI_PREDICT, "NAME",
     "cpu (default), cuda (GPUs), cuda:I or ref; as device=NAME"},
    {"--threads", NULL, INT, FIELD(threads), CLI_PLAN | CLI_BENCH | CLI_TRAIN | CLI_EVAL | CLI_INFER, "N",
     "threads (default: the cores at hand)"},
    {"--threads", NULL, INT, FIELD(threads), CLI_SCALE, "N", "threads of every rank (default 1)"},
    {"--ranks", NULL, TEXT, FIELD(rank_counts), CLI_SCALE, "1,2,4", "rank counts to measure"},
    {"--calibrate", NULL, FLAG, FIELD(calibrate), CLI_PREDICT, NULL,
     "measure exchanges, and steps of EXPERIMENT; or take FILES"},
    {"--ranks", NULL, TEXT, FIELD(rank_counts), CLI_PREDICT, "1,2,4",
     "rank counts; 1..1024 doubles (default: 1,2,4,8)"},
    {"--machine", NULL, TEXT, FIELD(machine), CLI_PREDICT, "NAME",
     "what computes: a file (of --calibrate), or a preset"},
    {"--network", NULL, TEXT, FIELD(network), CLI_PREDICT, "NAME", "what lies between, likewise"},
    {"--strategy", NULL, TEXT, FIELD(strategy), CLI_PREDICT, "NAME|all", "instead of parallel.strategy"},
    {"--algorithm", NULL, TEXT, FIELD(algorithm), CLI_PREDICT, "NAME",
     "ours (default), ring, rabenseifner, doubling, hierarchical"},
    {"--placement", NULL, TEXT, FIELD(placement), CLI_PREDICT, "HOW",
     "contiguous (default), random[:SEED], 0,5,7 or a file"},
    {"--engine", NULL, TEXT, FIELD(engine), CLI_PREDICT, "NAME",
     "closed, replay or shared (default: by rule)"},
    {"--step-time", NULL, REAL, FIELD(step_time), CLI_PREDICT, "S",
     "seconds that a rank alone takes, known from elsewhere"},
    {"--measured", NULL, LIST, FIELD(measured), CLI_PREDICT, "FILE",
     "results of bench, or a study, to compare with"},
    {"--list", NULL, FLAG, FIELD(list), CLI_PREDICT, NULL, "machines and networks that are known"},
    {"--csv", NULL, FLAG, FIELD(csv), CLI_PREDICT, NULL, "the table as CSV"},
    {"--batches", NULL, TEXT, FIELD(batches), CLI_PREDICT, "16,32,64",
     "batches of a rank (default: the experiment's)"},
    {"--until", NULL, TEXT, FIELD(until), CLI_PREDICT, "LENGTH",
     "a whole run: 10ep, 5000st, or 98% of --study"},
    {"--samples", NULL, INT, FIELD(samples), CLI_PREDICT, "N", "of an epoch (default: the data set's)"},
    {"--study", NULL, LIST, FIELD(study), CLI_PREDICT, "WHAT",
     "measured accuracies: a folder, or FILE.csv[:SERIES]"},
    {"--price", NULL, REAL, FIELD(price), CLI_PREDICT, "MONEY", "of a machine for an hour"},
    {"--budget", NULL, REAL, FIELD(budget), CLI_PREDICT, "MONEY", "that the run may cost"},
    {"--deadline", NULL, TEXT, FIELD(deadline), CLI_PREDICT, "TIME", "that it may take: 45min, 6h, 3d"},
    {"--memory", NULL, TEXT, FIELD(memory), CLI_PREDICT, "SIZE", "that a rank may take, as memory.limit"},
    {"--mtbf", NULL, TEXT, FIELD(mtbf), CLI_PREDICT, "TIME", "mean time between failures of a machine"},
    {"--checkpoint", NULL, TEXT, FIELD(checkpoint), CLI_PREDICT, "TIME",
     "what one takes: 5s, or by a rate, 2GB/s"},
    {"--restart", NULL, TEXT, FIELD(restart), CLI_PREDICT, "TIME", "after a failure, until training goes on"},
    {"--out", NULL, TEXT, FIELD(out), CLI_PREDICT, "DIR|FILE",
     "a page as well; of --calibrate: the file to write"},
    {"--threads", NULL, INT, FIELD(threads), CLI_PREDICT, "N", "threads of every rank"},
    {"--nodes", NULL, TEXT, FIELD(node_counts), CLI_PREDICT, "N",
     "machines that measure together; on each: the same command"},
    {"--slurm", NULL, FLAG, FIELD(script), CLI_PREDICT, NULL,
     "print a batch script that measures on --nodes"},
    {"--ranks-per-node", NULL, INT, FIELD(ranks_per_node), CLI_PREDICT, "R", "ranks of a machine"},
    {"--mode", NULL, TEXT, FIELD(mode), CLI_SCALE, "weak|strong",
     "what stays: the batch of a rank, or that of all ranks"},
    {"--repeats", NULL, INT, FIELD(repeats), CLI_SCALE, "R", "of every point, in turns (default 3)"},
    {"--train", NULL, FLAG, FIELD(train), CLI_SCALE, NULL,
     "train at every point: time to solution and accuracy, too"},
    {"--predict", NULL, TEXT, FIELD(predict), CLI_SCALE, "FILE",
     "a calibration: what points will take, said beforehand"},
    {"--network", NULL, TEXT, FIELD(network), CLI_SCALE, "NAME",
     "of --predict: another network than the file's"},
    {"--fresh", NULL, FLAG, FIELD(fresh), CLI_SCALE, NULL,
     "begin anew; a study that is there gets another name"},
    {"--format", NULL, TEXT, FIELD(format), CLI_BENCH, "NAME",
     "text, json, or as others print: horovod, cosmogan, mlperf"},
    {"--compare", NULL, FLAG, FIELD(compare_two), CLI_BENCH, NULL,
     "A B: which of two files of results (--json) is faster"},
    {"--compare", NULL, FLAG, FIELD(compare_two), CLI_SCALE, NULL,
     "A B: which of two studies is faster, if one is"},
    {"--force", NULL, FLAG, FIELD(force), CLI_SCALE, NULL,
     "with --compare: studies of different questions, too"},
    {"--ranks", "-n", INT, FIELD(ranks), CLI_BENCH | CLI_TRAIN | CLI_EVAL | CLI_INFER, "N",
     "ranks to start here (default: the setting ranks)"},
    {"--ranks", "-n", TEXT, FIELD(rank_counts), CLI_PLAN, "N",
     "ranks of the plan (default: the setting ranks); of the table of memory also 1,2,4 or 1..1024, which "
     "doubles"},
    {"--strategy", NULL, TEXT, FIELD(strategy), CLI_PLAN, "NAME|all",
     "a table instead: what a rank takes by kind, for every number of ranks, under that strategy or all"},
    {"--memory", NULL, TEXT, FIELD(memory), CLI_PLAN, "SIZE",
     "what a rank may take, as memory.limit=SIZE: whether it fits, and in the table the largest batch and "
     "model.width that do"},
    {"--out", NULL, TEXT, FIELD(out), CLI_PLAN, "DIR",
     "the table and its chart as a page, too: DIR/report.html"},
    {"--bind", NULL, TEXT, FIELD(bind), CLI_TRAIN | CLI_BENCH | CLI_EVAL | CLI_INFER, "core|none",
     "of ranks (default: core where each gets one)"},
    {"--nodes", NULL, INT, FIELD(nodes), CLI_TRAIN | CLI_BENCH | CLI_EVAL | CLI_INFER, "N",
     "machines that train together; on each: the same command"},
    {"--nodes", NULL, INT, FIELD(nodes), CLI_SUBMIT, "N", "nodes of the job"},
    {"--nodes", NULL, TEXT, FIELD(node_counts), CLI_SCALE, "1,2,4",
     "node counts as jobs of Slurm, instead of --ranks"},
    {"--ranks-per-node", NULL, INT, FIELD(ranks_per_node), CLI_SUBMIT | CLI_SCALE, "R", "ranks on each node"},
    {"--ranks-per-node", NULL, INT, FIELD(ranks_per_node), CLI_PLAN, "R",
     "ranks of a machine, which share variables and make up groups (default: all are on one)"},
    {"--threads", NULL, INT, FIELD(threads), CLI_SUBMIT, "T",
     "CPUs of each rank (default: a node's, shared out)"},
    {"--time", NULL, TEXT, FIELD(time), CLI_SCALE, "TIME",
     "limit of each job: minutes, HH:MM:SS or D-HH:MM:SS"},
    {"--time", NULL, TEXT, FIELD(time), CLI_SUBMIT, "TIME",
     "minutes, HH:MM:SS or D-HH:MM:SS, after which it goes back into the queue (default: the partition's)"},
    {"--partition", NULL, TEXT, FIELD(partition), CLI_SUBMIT | CLI_SCALE, "P", "default: the cluster's"},
    {"--account", NULL, TEXT, FIELD(account), CLI_SUBMIT | CLI_SCALE, "A", "whom the time is charged to"},
    {"--qos", NULL, TEXT, FIELD(qos), CLI_SUBMIT | CLI_SCALE, "Q", "quality of service"},
    {"--constraint", NULL, TEXT, FIELD(constraint), CLI_SUBMIT | CLI_SCALE, "C",
     "features that nodes must have"},
    {"--mem", NULL, TEXT, FIELD(mem), CLI_SUBMIT | CLI_SCALE, "SIZE", "memory of each node, such as 16G"},
    {"--slurm", NULL, LIST, FIELD(slurm), CLI_SUBMIT | CLI_SCALE, "--OPTION",
     "an option of sbatch, such as --gres=gpu:1; any number"},
    {"--setup", NULL, LIST, FIELD(setup), CLI_SUBMIT | CLI_SCALE, "LINE",
     "shell before the ranks: 'module load openmpi'; any number"},
    {"--job-name", NULL, TEXT, FIELD(job_name), CLI_SUBMIT, "NAME", "default: the experiment's name"},
    {"--scheduler", NULL, TEXT, FIELD(scheduler), CLI_SUBMIT, "NAME",
     "slurm (default), or pbs, whose script is only printed"},
    {"--follow", NULL, MAYBE, FIELD(follow), CLI_SUBMIT, "[=JOB]",
     "show the job's state and output until it ends (the default at a terminal; Ctrl-C leaves it running), "
     "or "
     "those of a job submitted before"},
    {"--no-follow", NULL, FLAG, FIELD(no_follow), CLI_SUBMIT, NULL, "submit, and no more"},
    {"--cancel", NULL, TEXT, FIELD(cancel), CLI_SUBMIT, "JOB",
     "end a job: after a checkpoint when it runs, at once when it waits"},
    {"--node-rank", NULL, TEXT, FIELD(node_rank), CLI_TRAIN | CLI_BENCH | CLI_EVAL | CLI_INFER | CLI_PREDICT,
     "I", "which of them this is, from 0 (or NODE_RANK)"},
    {"--master", NULL, TEXT, FIELD(master), CLI_TRAIN | CLI_BENCH | CLI_EVAL | CLI_INFER | CLI_PREDICT,
     "HOST:PORT", "where machine 0 is met (or MASTER_ADDR)"},
    {"--join-timeout", NULL, REAL, FIELD(join_timeout),
     CLI_TRAIN | CLI_BENCH | CLI_EVAL | CLI_INFER | CLI_PREDICT, "S",
     "how long machines wait for one another"},
    {"--insecure", NULL, FLAG, FIELD(insecure), CLI_TRAIN | CLI_BENCH | CLI_EVAL | CLI_INFER, NULL,
     "machines may meet without a secret (`lockstep secret new` makes one)"},
    {"--insecure", NULL, FLAG, FIELD(insecure), CLI_PREDICT, NULL, "machines may meet without a secret"},
    {"--steps", NULL, INT, FIELD(steps), CLI_BENCH | CLI_SCALE | CLI_PREDICT, "N",
     "timed steps (default: as many as fit --seconds)"},
    {"--seconds", NULL, REAL, FIELD(seconds), CLI_BENCH | CLI_SCALE | CLI_PREDICT, "S",
     "time to measure for (default 5)"},
    {"--against", NULL, TEXT, FIELD(against), CLI_BENCH, "KEY=VALUE",
     "time it in turns with the same under that setting (KEY alone: the other of true and false)"},
    {"--turn", NULL, INT, FIELD(turn), CLI_BENCH, "N",
     "of --against: steps in a row of one kind, up to 1000 (default 4; 1 where steps are long)"},
    {"--beside", NULL, INT, FIELD(beside), CLI_BENCH, "N",
     "of one rank: so many more that take the same steps"},
    {"--profile", NULL, FLAG, FIELD(profile), CLI_BENCH, NULL, "time per kind of op and per node"},
    {"--export", NULL, TEXT, FIELD(export), CLI_BENCH, "FILE",
     "write all costs of the step: nodes, buckets, probe, steps"},
    {"--collectives", NULL, FLAG, FIELD(collectives), CLI_BENCH, NULL,
     "time exchanges between ranks alone; no EXPERIMENT"},
    {"--sizes", NULL, TEXT, FIELD(sizes), CLI_BENCH | CLI_PREDICT, "LIST",
     "of exchanges: vectors of 4KiB,1MiB,..."},
    {"--graph", NULL, TEXT, FIELD(graph), CLI_PLAN, "FILE",
     "FILE.svg: draw it, queues as lanes over time, memory below; FILE.dot: for Graphviz"},
    {"--diff", NULL, FLAG, FIELD(compare_two), CLI_PLAN, NULL,
     "A B: how two plans differ: experiments, files of --json, or A and a KEY=VALUE; exit code 1 where they "
     "do"},
    {"--passes", NULL, FLAG, FIELD(passes), CLI_PLAN, NULL,
     "how the plan was made: each pass with what it left and its time"},
    {"--tune", NULL, FLAG, FIELD(tune), CLI_PLAN, NULL,
     "time kernels and show the ones that training would use"},
    {"--settings", NULL, FLAG, FIELD(list_settings), CLI_PLAN | CLI_BENCH, NULL,
     "list all settings with their values and stop"},
    {"--resume", NULL, MAYBE, FIELD(resume), CLI_TRAIN, "[=RUN]",
     "go on with RUN (default: the newest) and its settings; key=value changes them, EXPERIMENT is not "
     "needed"},
    {"--run-dir", NULL, TEXT, FIELD(run_dir), CLI_TRAIN | CLI_SUBMIT, "DIR",
     "where the run's files go: a new or empty folder (default: a new one in runs/)"},
    {"--dry-run", NULL, FLAG, FIELD(dry_run), CLI_TRAIN, NULL, "print the resolved experiment and stop"},
    {"--dry-run", NULL, FLAG, FIELD(dry_run), CLI_SUBMIT, NULL, "print the script and stop"},
    {"--quiet", NULL, FLAG, FIELD(quiet), CLI_TRAIN, NULL, "no progress, no tables"},
    {"--dir", NULL, TEXT, FIELD(dir), CLI_NEW, "DIR", "the folder to write (default: NAME)"},
    {"--dir", NULL, TEXT, FIELD(dir), CLI_SCALE, "DIR",
     "the study's folder (default: studies/EXPERIMENT-MODE)"},
    {"--out", NULL, TEXT, FIELD(out), CLI_REPORT, "DIR",
     "the folder to write (default: RUN/report; of several runs: report)"},
    {"--out", NULL, TEXT, FIELD(out), CLI_INFER, "FILE",
     "FILE.csv or FILE.npy: write the outputs of every sample"},
    {"--split", NULL, TEXT, FIELD(split), CLI_INFER, "NAME", "train, val or test (default): which samples"},
    {"--output", NULL, TEXT, FIELD(output), CLI_INFER, "NAME", "of a model with several outputs: this one"},
    {"--probabilities", NULL, FLAG, FIELD(probabilities), CLI_INFER, NULL,
     "write a classifier's probabilities instead of its scores (logits)"},
    {"--experiment", NULL, TEXT, FIELD(experiment), CLI_EVAL | CLI_INFER, "NAME",
     "model and data of a file of weights (else: model.trial=... data.kind=...), or in the place of a run's"},
    {"--watch", NULL, FLAG, FIELD(watch), CLI_REPORT, NULL,
     "write it again when a run has news, until all have ended; the page loads itself anew"},
    {"--open", NULL, FLAG, FIELD(open), CLI_REPORT, NULL, "show it in a browser ($BROWSER, or xdg-open)"},
    {"--dir", NULL, TEXT, FIELD(dir), CLI_RUNS, "DIR", "where the runs are (default: runs)"},
    {"--sort", NULL, TEXT, FIELD(sort), CLI_RUNS, "KEY",
     "list: by started (default), metric, state, acc, test/acc, ... or any setting; -KEY: the largest first"},
    {"--where", NULL, LIST, FIELD(where), CLI_RUNS, "CONDITION",
     "list: state=running, acc>0.9, optimizer.lr<=0.1, run~mnist-*; may be given several times"},
    {"--filter", NULL, LIST, FIELD(where), CLI_RUNS, "CONDITION", "the same as --where"},
    {"--wide", NULL, FLAG, FIELD(wide), CLI_RUNS, NULL, "list: all columns, however wide the terminal is"},
    {"--follow", "-f", FLAG, FIELD(tail), CLI_RUNS, NULL, "logs: go on until the run ends"},
    {"--rank", NULL, TEXT, FIELD(rank), CLI_RUNS, "R", "logs: of that rank (default 0)"},
    {"--html", NULL, FLAG, FIELD(html), CLI_RUNS, NULL,
     "compare: as a page for the browser (`lockstep report`)"},
    {"--out", NULL, TEXT, FIELD(out), CLI_RUNS, "DIR",
     "compare --html: the folder to write (default: report)"},
    {"--timeout", NULL, REAL, FIELD(timeout), CLI_RUNS, "S",
     "stop: how long to wait for the end (default 600)"},
    {"--yes", "-y", FLAG, FIELD(yes), CLI_RUNS, NULL, "rm: do not ask"},
    {"--csv", NULL, FLAG, FIELD(csv), CLI_RUNS, NULL, "list, metrics, compare: as CSV"},
    {"--cflags", NULL, FLAG, FIELD(cflags), CLI_INFO, NULL,
     "print what compiles a plug-in, such as -I/usr/include"},
    {"--json", NULL, FLAG, FIELD(json), CLI_ALL, NULL, "one JSON object per line, the result last"},
    {"--help", "-h", FLAG, FIELD(help), CLI_ALL, NULL, "this text"},
};

#define N_OPTIONS (sizeof options / sizeof options[0])

/* -- parsing ----------------------------------------------------------------------------------------------
 */

/* The option called `word` (up to '=', if it has one), or NULL. */
static const option *find(const cli_command *c, const char *word, size_t length)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const option *o = &options[i];
        if (!(o->commands & c->bit)) continue;
        if (strlen(o->name) == length && strncmp(o->name, word, length) == 0) return o;
        if (o->alias != NULL && strlen(o->alias) == length && strncmp(o->alias, word, length) == 0) return o;
    }
    return NULL;
}

/* The commands, other than `c`, that have the option called `name`: "train and eval"; "" when none has. */
static void others_with(const cli_command *c, const char *name, char *buf, size_t size)
{
    unsigned commands = 0;
    size_t at = 0;

    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0) commands |= options[i].commands & ~c->bit;
    buf[0] = '\0';
    for (const cli_command *k = cli_commands; k->name != NULL && at < size; k++) {
        if (!(commands & k->bit)) continue;
        commands &= ~k->bit;
        at += (size_t)snprintf(buf + at, size - at, "%s%s",
                               at == 0         ? ""
                               : commands == 0 ? " and "
                                               : ", ",
                               k->name);
    }
}

static bool is_of_infer(const char *name)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if ((options[i].commands & CLI_INFER) && strcmp(options[i].name, name) == 0) return true;
    return false;
}

/* An option that others have, a setting, or one that is spelt like it; `value` is what follows it, or NULL.
 */
static ls_status unknown_option(const cli_command *c, const char *word, size_t length, const char *value,
                                ls_err *err)
{
    const char *names[N_OPTIONS], *near;
    char name[64], text[512];
    size_t n = 0;

    for (size_t i = 0; i < N_OPTIONS; i++)
        if (options[i].commands & c->bit) names[n++] = options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    /* Who evaluates and writes --split means that of infer, no setting of the experiment. */
    if (!(c->bit == CLI_EVAL && is_of_infer(name)) &&
        cli_hint_option(c, name, value, true, text, sizeof text))
        return ls_fail(err, LS_INVALID, "no option \"%s\"; %s", name, text);
    others_with(c, name, text, sizeof text);
    near = ls_text_nearest(name, names, n);
    if (text[0] != '\0')
        return ls_fail(err, LS_INVALID, "\"%s\" is an option of %s, not of %s%s%s%s", name, text, c->name,
                       near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                       near != NULL ? "\"?" : "");
    if (near != NULL) return ls_fail(err, LS_INVALID, "no option \"%s\"; did you mean \"%s\"?", name, near);
    if (cli_hint_option(c, name, value, false, text, sizeof text))
        return ls_fail(err, LS_INVALID, "no option \"%s\"; %s", name, text);
    return ls_fail(err, LS_INVALID, "no option \"%s\"; `lockstep %s --help` lists them", name, c->name);
}

/* The word after an option that is not known, where it can be its value. */
static const char *value_after(int argc, char **argv, int i, const char *eq)
{
    if (eq != NULL) return eq + 1;
    if (i + 1 >= argc || argv[i + 1][0] == '-' || strchr(argv[i + 1], '=') != NULL) return NULL;
    return argv[i + 1];
}

static ls_status append(cli_list *list, const char *name, const char *text, ls_err *err)
{
    if (list->n == CLI_LIST_MAX)
        return ls_fail(err, LS_INVALID, "%s is given more than %d times", name, CLI_LIST_MAX);
    list->of[list->n++] = text;
    return LS_OK;
}

/* Numbers are positive everywhere; one that is not given is 0. */
static ls_status store(const option *o, const char *text, cli_args *args, ls_err *err)
{
    char *field = (char *)args + o->field, *end;
    double x = 0;

    switch (o->kind) {
    case FLAG: *(bool *)field = true; return LS_OK;
    case TEXT: *(const char **)field = text; return LS_OK;
    case MAYBE: *(const char **)field = text != NULL ? text : ""; return LS_OK;
    case LIST: return append((cli_list *)(void *)field, o->name, text, err);
    default: break;
    }
    x = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(x) || x <= 0 || x > 1e9)
        return ls_fail(err, LS_INVALID, "%s: \"%s\" is no positive number", o->name, text);
    if (o->kind == INT && x != floor(x))
        return ls_fail(err, LS_INVALID, "%s: \"%s\" is no whole number", o->name, text);
    if (o->kind == INT)
        *(int *)field = (int)x;
    else
        *(double *)field = x;
    return LS_OK;
}

bool cli_is_given(const cli_args *args, unsigned command, const char *name)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const option *o = &options[i];
        const char *field = (const char *)args + o->field;
        if (!(o->commands & command) || strcmp(o->name, name) != 0) continue;
        switch (o->kind) {
        case FLAG: return *(const bool *)field;
        case INT: return *(const int *)(const void *)field > 0;
        case REAL: return *(const double *)(const void *)field > 0;
        case LIST: return ((const cli_list *)(const void *)field)->n > 0;
        default: return *(const char *const *)(const void *)field != NULL;
        }
    }
    return false;
}

/* One option with its value, which follows '=' or as the next word; *i moves on. */
static ls_status parse_option(const cli_command *c, int argc, char **argv, int *i, cli_args *args,
                              ls_err *err)
{
    const char *word = argv[*i], *eq = strchr(word, '=');
    size_t length = eq != NULL ? (size_t)(eq - word) : strlen(word);
    const option *o = find(c, word, length);

    if (o == NULL) return unknown_option(c, word, length, value_after(argc, argv, *i, eq), err);
    if (o->kind == FLAG && eq != NULL) return ls_fail(err, LS_INVALID, "%s takes no value", o->name);
    if (o->kind == MAYBE && eq == NULL && o->field == FIELD(resume) && *i + 1 < argc &&
        cli_resume_takes(argv[*i + 1]))
        return store(o, argv[++*i], args, err);
    if (o->kind == FLAG || (o->kind == MAYBE && eq == NULL)) return store(o, NULL, args, err);
    if (o->kind == MAYBE && eq[1] == '\0') /* a variable of the shell that is not set, most likely */
        return ls_fail(err, LS_INVALID, "%s has an empty value; leave the = out, or name one: %s%s", word,
                       o->name, o->arg);
    if (eq != NULL) return store(o, eq + 1, args, err);
    if (*i + 1 >= argc) return ls_fail(err, LS_INVALID, "%s needs a value: %s", o->name, o->arg);
    return store(o, argv[++*i], args, err);
}

/* What every command needs before it begins; words of their own are checked by those that have them.  All of
 * it is exit code 2, and nothing was created. */
static ls_status check_complete(const cli_command *c, const cli_args *args, ls_err *err)
{
    if (args->help) return LS_OK;
    if (c->bit == CLI_DATA && args->model == NULL)
        return ls_fail(err, LS_INVALID, "info, verify or make?  `lockstep data --help` says more");
    if (c->bit == CLI_CKPT) return cli_ckpt_check(args, err);
    if (c->bit == CLI_SECRET) return cli_secret_check(args, err);
    if (c->bit == CLI_REPORT && args->model == NULL && args->n_settings == 0)
        return ls_fail(
            err, LS_INVALID,
            "which run?  `lockstep report RUN`, a directory that `lockstep train` or `scale` wrote");
    if (c->bit == CLI_REPORT) return LS_OK;
    if (c->bit == CLI_RUNS) return cli_runs_check(args, err);
    if (c->bit == CLI_BENCH && (args->compare_two || args->collectives || args->sizes != NULL))
        return cli_bench_check(args, err);
    if (c->bit == CLI_PREDICT) return cli_predict_check(args, err);
    if (c->bit == CLI_PLAN) {
        const ls_status st = cli_plan_check(args, err);
        if (st != LS_OK) return st;
    }
    if (c->bit == CLI_SCALE && (args->compare_two || args->model != NULL)) {
        const ls_status st = cli_scale_check(args, err);
        if (st != LS_OK) return st;
    }
    if (c->bit == CLI_NEW && args->model == NULL)
        return ls_fail(err, LS_INVALID, "what is the model to be called?  `lockstep new NAME`");
    if (c->bit == CLI_SUBMIT && cli_submit_is_of_job(args)) return LS_OK;
    if (c->bit != CLI_INFO && args->model == NULL && args->resume == NULL)
        return ls_fail(err, LS_INVALID, "which model?  `lockstep info` lists them; a file is fine, too");
    if (args->threads > CLI_MAX_THREADS)
        return ls_fail(err, LS_INVALID, "--threads %d: more than %d make no sense", args->threads,
                       CLI_MAX_THREADS);
    return LS_OK;
}

bool cli_takes_settings(const cli_command *c)
{
    return !(c->bit & (CLI_SECRET | CLI_INFO | CLI_CKPT | CLI_NEW | CLI_REPORT | CLI_RUNS));
}

/* Words after the first that are no settings. */
static bool takes_words(const cli_command *c, const cli_args *args)
{
    return (c->bit & (CLI_SECRET | CLI_CKPT | CLI_SCALE | CLI_REPORT | CLI_RUNS | CLI_PREDICT)) != 0 ||
           args->compare_two;
}

/* Options that are another way to write a setting come last, so that they hold.  What compares results that
 * are there takes no settings, and says so itself (cli_*_check). */
static ls_status add_options_as_settings(const cli_command *c, cli_args *args, ls_err *err)
{
    const ls_backend *backend;
    ls_status st = LS_OK;

    if (c->bit == CLI_PLAN) LS_TRY(cli_plan_counts(args, err));
    if (args->memory != NULL) {
        snprintf(args->memory_setting, sizeof args->memory_setting, "memory.limit=%.48s", args->memory);
        args->settings[args->n_settings++] = args->memory_setting;
    }
    /* A table sets the strategy of each row; settings of any of them have a meaning there. */
    if (args->strategy != NULL) args->settings[args->n_settings++] = "parallel.strategy=hybrid";
    if (args->ranks > 0) {
        snprintf(args->ranks_setting, sizeof args->ranks_setting, "ranks=%d", args->ranks);
        args->settings[args->n_settings++] = args->ranks_setting;
    }
    if (args->device == NULL) goto out;
    /* Before it is read as YAML, which has a meaning of its own for a colon at the end. */
    LS_TRY(ls_device_find(&backend, args->device, err));
    snprintf(args->device_setting, sizeof args->device_setting, "device=%s", args->device);
    args->settings[args->n_settings++] = args->device_setting;
out:
    return st;
}

ls_status cli_parse(const cli_command *c, int argc, char **argv, cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    args->settings = ls_alloc(LS_MEM_CLI, sizeof *args->settings * ((size_t)argc + 4));
    if (args->settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] == '-') {
            LS_TRY(parse_option(c, argc, argv, &i, args, err));
        } else if (c->bit != CLI_INFO && args->model == NULL && strchr(argv[i], '=') == NULL) {
            args->model = argv[i];
        } else if (takes_words(c, args) || (cli_takes_settings(c) && strchr(argv[i], '=') != NULL)) {
            args->settings[args->n_settings++] = argv[i];
        } else {
            st = ls_fail(err, LS_INVALID, "\"%s\" is one word too many%s", argv[i],
                         cli_takes_settings(c) ? "; settings are written key=value" : "");
            goto out;
        }
    }
    if (!args->help) LS_TRY(add_options_as_settings(c, args, err));
    LS_TRY(check_complete(c, args, err));
out:
    return st;
}

/* -- help -------------------------------------------------------------------------------------------------
 */

static void print_option(const option *o)
{
    char left[64];

    snprintf(left, sizeof left, "%s%s%s%s%s", o->alias != NULL ? o->alias : "", o->alias != NULL ? ", " : "",
             o->name, o->arg != NULL && o->kind != MAYBE ? " " : "", o->arg != NULL ? o->arg : "");
    cli_print_wrapped(o->help, printf("  %-18s ", left), 21);
}

bool cli_option_at(int i, cli_option *out)
{
    if (i < 0 || (size_t)i >= N_OPTIONS) return false;
    *out = (cli_option){options[i].name, options[i].alias,    options[i].arg,
                        options[i].help, options[i].commands, options[i].kind == MAYBE};
    return true;
}

/* Names separated by commas, broken before column 78. */
static void print_models(void)
{
    int column = printf("Models:");

    for (int i = 0; ls_trials[i] != NULL; i++) {
        int width = (int)strlen(ls_trials[i]->name) + 2;
        if (column + width > 78) column = printf("\n       ") - 1;
        column += printf(" %s%s", ls_trials[i]->name, ls_trials[i + 1] != NULL ? "," : "\n");
    }
}

/* The settings of the model that `experiment` trains, which may be a plug-in. */
static int help_experiment(const cli_command *c, const char *experiment)
{
    ls_experiment x = {0};
    ls_err err = {0};
    int code = CLI_DONE;

    if (ls_experiment_load(&x, experiment, NULL, 0, &err) == LS_OK)
        cli_help_model(x.trial);
    else
        code = cli_fail(c->name, &err);
    ls_experiment_release(&x);
    return code;
}

/* Options that `predict --help` leaves to `predict --help all`, so that it fits a screen: those of measuring,
 * and of how exchanges are computed. */
static bool is_seldom(const cli_command *c, const option *o)
{
    static const char *const names[] = {"--nodes",     "--slurm",  "--node-rank", "--master",
                                        "--insecure",  "--steps",  "--seconds",   "--join-timeout",
                                        "--algorithm", "--engine", "--sizes",     "--placement"};

    for (size_t i = 0; c->bit == CLI_PREDICT && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(o->name, names[i]) == 0) return true;
    return false;
}

static void print_options(const cli_command *c, bool all)
{
    int left_out = 0;

    printf("\nOptions:\n");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (!(options[i].commands & c->bit)) continue;
        if (all || !is_seldom(c, &options[i]))
            print_option(&options[i]);
        else
            left_out++;
    }
    if (left_out > 0) printf("`lockstep %s --help all` lists %d more.\n", c->name, left_out);
}

int cli_help(const cli_command *c, const char *topic)
{
    const bool has_settings = cli_takes_settings(c) && c->bit != CLI_DATA;
    const bool all = topic != NULL && c->bit == CLI_PREDICT && strcmp(topic, "all") == 0;

    if (has_settings && topic != NULL && strcmp(topic, "settings") == 0) return cli_help_settings();
    printf("Usage: lockstep %s %s\n\n", c->name, c->usage);
    cli_print_wrapped(c->about, 0, 0);
    print_options(c, all);
    if (c->bit == CLI_DATA) cli_data_help();
    if (c->bit == CLI_CKPT) cli_ckpt_help();
    if (c->bit == CLI_RUNS) cli_runs_help();
    if (!has_settings) return CLI_DONE;
    printf("\nSettings such as batch.per_rank=32, seed=7 or optimizer.lr=0.1 change what the\n"
           "experiment says; `lockstep %s --help settings` lists them all.\n",
           c->name);
    if (strstr(c->usage, "EXPERIMENT") == NULL) return CLI_DONE;
    printf("EXPERIMENT is a YAML file, the name of one that ships (`lockstep info` lists\n"
           "them), or a model: a name, or the .so file of a plug-in (`lockstep new`).\n");
    print_models();
    return topic != NULL && !all ? help_experiment(c, topic) : CLI_DONE;
}

void cli_help_all(void)
{
    printf(
        "Usage: lockstep COMMAND ...\n\nTrains neural networks in synchronous data parallel.\n\nCommands:\n");
    for (const cli_command *c = cli_commands; c->name != NULL; c++)
        cli_print_wrapped(c->about, printf("  %-7s ", c->name), 10);
    printf("\n`lockstep COMMAND --help` says more; `lockstep --version` prints the version.\n");
}

int cli_fail(const char *command, const ls_err *err)
{
    char text[2 * LS_ERR_TEXT_MAX];

    ls_printable(err->text, strlen(err->text), text, sizeof text);
    fprintf(stderr, "lockstep %s: %s\n", command, text);
    return ls_launch_exit_code(err->status);
}
