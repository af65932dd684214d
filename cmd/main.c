/* main.c: `lockstep COMMAND ...`: finds the command and runs it.  The program's entry is in lockstep.c, so
 * that the generator of the manual can be linked with the tables here. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/output.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli.h"

const cli_command cli_commands[] = {
    {"plan", CLI_PLAN, "EXPERIMENT [key=value ...] [options]",
     "Shows the compiled training step, its arithmetic and its memory, without running it; draws it, or says "
     "how two differ.",
     cli_plan},
    {"bench", CLI_BENCH, "EXPERIMENT [key=value ...] [options]",
     "Measures a training step on made-up data, or with data=real on the experiment's: rates of all ranks, "
     "waiting, FLOP/s, memory.",
     cli_bench},
    {"scale", CLI_SCALE, "EXPERIMENT [key=value ...] --ranks 1,2 --mode weak|strong",
     "A scaling study: measures rank counts in turns, and reports throughput and efficiency with their "
     "uncertainty.  Run again, it goes on where it was stopped.",
     cli_scale},
    {"predict", CLI_PREDICT, "EXPERIMENT [key=value ...] --ranks 1,8 --network NAME",
     "Time of a step or a run on machines not here; --calibrate measures this one.", cli_predict},
    {"train", CLI_TRAIN, "EXPERIMENT|--resume[=RUN] [key=value ...] [options]",
     "Trains, with checkpoints, TensorBoard files and a summary in a run directory.", cli_train},
    {"eval", CLI_EVAL, "RUN|CHECKPOINT|FILE.safetensors [key=value ...]",
     "The test pass alone, with the weights of a run, of one of its checkpoints or of a file.", cli_eval},
    {"infer", CLI_INFER, "RUN|CHECKPOINT|FILE.safetensors [key=value ...]",
     "What the model says of every sample, as CSV or npy (--out); of classifiers the accuracy of each class "
     "and "
     "the confusion matrix.",
     cli_infer},
    {"report", CLI_REPORT, "RUN|STUDY|FOLDER ... [options]",
     "A page to be opened in a browser: metrics, throughput, ledger and timeline of one or several runs; or "
     "that of a scaling study, made again.",
     cli_report},
    {"runs", CLI_RUNS, "[list|show|logs|metrics|compare|stop|rm] [RUN ...]",
     "Lists runs, shows one, follows its log, compares several, ends or removes them.", cli_runs},
    {"data", CLI_DATA, "info|verify|make key=value ... [options]",
     "Describes a data set, reads all of it to find damage, or writes a small synthetic one.", cli_data},
    {"ckpt", CLI_CKPT, "show|verify|export|import PATH [TO] [options]",
     "Lists a checkpoint, looks for damage, writes it as plain safetensors or reads such a file.", cli_ckpt},
    {"submit", CLI_SUBMIT, "EXPERIMENT [key=value ...] --nodes N [options]",
     "Trains as a job of Slurm: writes and submits the batch script, follows it, cancels it.", cli_submit},
    {"secret", CLI_SECRET, "new [FILE] [options]",
     "Makes a secret by which the machines of a run know one another, and writes it to FILE or the terminal.",
     cli_secret},
    {"new", CLI_NEW, "NAME [options]",
     "Writes a folder with a model of one's own to begin with: source, Makefile, experiment.", cli_new},
    {"info", CLI_INFO, "[options]", "Version, processor, backends, libraries, models.", cli_info},
    {NULL, 0, NULL, NULL, NULL},
};

static const cli_command *find(const char *name)
{
    for (const cli_command *c = cli_commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[32], *near, *text = cli_hint_command(name);
    size_t n = 0;

    for (; cli_commands[n].name != NULL && n < 32; n++) names[n] = cli_commands[n].name;
    near = ls_text_nearest(name, names, n);
    if (text != NULL)
        fprintf(stderr, "lockstep: no command \"%s\"; %s\n", name, text);
    else if (near != NULL)
        fprintf(stderr, "lockstep: no command \"%s\"; did you mean \"%s\"?\n", name, near);
    else
        fprintf(stderr, "lockstep: no command \"%s\"; `lockstep --help` lists them\n", name);
    return CLI_USAGE;
}

/* `lockstep help [COMMAND [TOPIC]]`, the same as `lockstep COMMAND --help [TOPIC]`. */
static int help(int argc, char **argv)
{
    const cli_command *c = argc > 0 ? find(argv[0]) : NULL;

    if (c != NULL) return cli_help(c, argc > 1 ? argv[1] : NULL);
    if (argc > 0 && strcmp(argv[0], "settings") == 0) return cli_help_settings();
    if (argc > 0) return unknown_command(argv[0]);
    cli_help_all();
    return CLI_DONE;
}

static int run_command(const cli_command *c, int argc, char **argv)
{
    cli_args args = {0};
    ls_err err = {0};
    int rc;

    if (cli_parse(c, argc, argv, &args, &err) != LS_OK) {
        rc = cli_fail(c->name, &err);
    } else if (args.help) {
        rc = cli_help(c, args.model);
    } else {
        rc = c->run(&args);
    }
    ls_free(args.settings);
    return rc;
}

static int run_words(int argc, char **argv)
{
    const cli_command *c;

    if (argc < 2) {
        cli_help_all();
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("lockstep %s\n", LS_VERSION);
        return CLI_DONE;
    }
    /* Before any thread is made; it may start the program anew. */
    ls_parallel_settle(argv);
    c = find(argv[1]);
    return c != NULL ? run_command(c, argc - 2, argv + 2) : unknown_command(argv[1]);
}

int cli_main(int argc, char **argv)
{
    ls_err err = {0};
    int code;

    ls_output_begin();
    code = run_words(argc, argv);
    if (ls_output_end(&err) == LS_OK) return code;
    /* What has failed before has said so, and its own code tells more. */
    if (code == CLI_DONE || code == CLI_STOPPED) fprintf(stderr, "lockstep: %s\n", err.text);
    return code == CLI_DONE ? CLI_FAILED : code;
}
