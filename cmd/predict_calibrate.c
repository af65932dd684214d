/* predict_calibrate.c: `lockstep predict --calibrate`: from measurements, made here or elsewhere, to the file
 * that predictions rest on. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/program.h"
#include "base/replace.h"
#include "base/units.h"
#include "predict.h"
#include "predict/calibration.h"
#include "study/study.h"

#define DEFAULT_OUT "calibration.json"

/* -- words ------------------------------------------------------------------------------------------------
 */

/* Results are told from experiments by their names. */
static bool is_results(const char *word)
{
    const size_t n = strlen(word);

    return (n > 5 && strcmp(word + n - 5, ".json") == 0) || (n > 6 && strcmp(word + n - 6, ".jsonl") == 0);
}

/* The command line taken apart: the experiment with its settings, and files. */
typedef struct words {
    cli_args args; /* model and settings are those of the experiment; settings are to be freed */
    const char *files[PREDICT_FILES];
    int n_files;
} words;

static ls_status add_file(words *w, const char *path, ls_err *err)
{
    if (w->n_files == PREDICT_FILES)
        return ls_fail(err, LS_INVALID, "more than %d files", (int)PREDICT_FILES);
    w->files[w->n_files++] = path;
    return LS_OK;
}

static ls_status take_apart(words *w, const cli_args *args, ls_err *err)
{
    ls_status st = LS_OK;

    *w = (words){.args = *args};
    w->args.model = NULL;
    w->args.n_settings = 0;
    w->args.settings = ls_alloc(LS_MEM_CLI, sizeof *args->settings * ((size_t)args->n_settings + 1));
    if (w->args.settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = -1; i < args->n_settings; i++) {
        const char *word = i < 0 ? args->model : args->settings[i];
        if (word == NULL) continue;
        if (is_results(word))
            LS_TRY(add_file(w, word, err));
        else if (i >= 0 && strchr(word, '=') != NULL)
            w->args.settings[w->args.n_settings++] = word;
        else if (w->args.model == NULL)
            w->args.model = word;
        else
            LS_TRY(ls_fail(err, LS_INVALID,
                           "\"%s\" is one word too many: one EXPERIMENT, its key=value, and FILES.json",
                           word));
    }
    if (w->args.model == NULL && w->args.n_settings > 0)
        LS_TRY(ls_fail(err, LS_INVALID, "%s: a setting of which experiment?", w->args.settings[0]));
    if (w->args.model == NULL && args->batches != NULL)
        LS_TRY(ls_fail(err, LS_INVALID, "--batches %s: of which experiment?", args->batches));
out:
    return st;
}

bool predict_calibrate_measures(const cli_args *args)
{
    bool files = false;

    for (int i = -1; i < args->n_settings; i++) {
        const char *word = i < 0 ? args->model : args->settings[i];
        if (word == NULL || (i >= 0 && strchr(word, '=') != NULL)) continue;
        if (!is_results(word)) return true;
        files = true;
    }
    return !files || args->rank_counts != NULL;
}

/* A job measures one thing: a step, or exchanges. */
static ls_status check_script(const words *w, ls_err *err)
{
    const cli_args *a = &w->args;

    if (a->node_counts == NULL || a->ranks_per_node == 0)
        return ls_fail(err, LS_INVALID, "--slurm: a job of what size?  Add --nodes N --ranks-per-node R");
    if (w->n_files > 0)
        return ls_fail(err, LS_INVALID, "%s: the job takes no files; calibrate from what it leaves and these",
                       w->files[0]);
    if (a->model != NULL && a->sizes != NULL)
        return ls_fail(err, LS_INVALID, "--sizes is of exchanges, and with an EXPERIMENT the job has steps");
    return LS_OK;
}

ls_status predict_calibrate_check(const cli_args *args, ls_err *err)
{
    predict_counts c;
    words w;
    ls_status st = LS_OK;

    LS_TRY(take_apart(&w, args, err));
    if (args->rank_counts != NULL) LS_TRY(predict_counts_read(&c, "--ranks", args->rank_counts, err));
    if (args->batches != NULL) LS_TRY(predict_counts_read(&c, "--batches", args->batches, err));
    if (args->node_counts != NULL) {
        LS_TRY(predict_counts_read(&c, "--nodes", args->node_counts, err));
        if (c.n != 1)
            LS_TRY(ls_fail(err, LS_INVALID,
                           "--nodes %s: of a calibration it is one number: machines that "
                           "all run this command",
                           args->node_counts));
    }
    if (args->script) LS_TRY(check_script(&w, err));
    if (args->threads > CLI_MAX_THREADS)
        LS_TRY(ls_fail(err, LS_INVALID, "--threads %d: more than %d make no sense", args->threads,
                       CLI_MAX_THREADS));
out:
    ls_free(w.args.settings);
    return st;
}

/* -- what to measure --------------------------------------------------------------------------------------
 */

/* 1, 2, 4, ... up to a rank for every core. */
static void default_ranks(predict_counts *c, int cores)
{
    for (int ranks = 1; ranks <= (cores > 2 ? cores : 2) && c->n < PREDICT_COUNTS; ranks *= 2)
        c->of[c->n++] = ranks;
}

/* Steps are measured with batch.per_rank: whatever excludes it is refused before the first measurement. */
static ls_status check_batch(const predict_measure *m, ls_err *err)
{
    cli_args args = *m->args;
    ls_experiment x = {0};
    char setting[40];
    ls_status st = LS_OK;

    args.settings = ls_alloc(LS_MEM_CLI, sizeof *args.settings * ((size_t)args.n_settings + 1));
    if (args.settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = 0; i < args.n_settings; i++) args.settings[i] = m->args->settings[i];
    snprintf(setting, sizeof setting, "batch.per_rank=%d", m->batch);
    args.settings[args.n_settings++] = setting;
    st = ls_fail_in(err, cli_load(&x, args.model, &args, 1, err), "--calibrate measures batches of a rank");
    ls_experiment_release(&x);
    ls_free(args.settings);
    return st;
}

/* Half, once and twice the experiment's, each once. */
static ls_status choose_batches(predict_measure *m, ls_err *err)
{
    ls_experiment x = {0};
    ls_status st = LS_OK;

    LS_TRY(cli_load(&x, m->args->model, m->args, 1, err));
    LS_TRY(cli_device_check(m->args, ls_config_text(x.cfg, "device"), err));
    m->batch = (int)ls_config_int(x.cfg, "batch.per_rank");
    m->full = strcmp(ls_config_text(x.cfg, "device"), "cpu") == 0 ? ls_launch_cores() : 1;
    if (m->args->batches != NULL) {
        LS_TRY(predict_counts_read(&m->batches, "--batches", m->args->batches, err));
        m->batch = m->batches.of[m->batches.n / 2];
    } else {
        const int of[] = {m->batch / 2, m->batch, 2 * m->batch};
        for (int k = m->batch > 1 ? 0 : 1; k < 3; k++) m->batches.of[m->batches.n++] = of[k];
    }
    LS_TRY(check_batch(m, err));
out:
    ls_experiment_release(&x);
    return st;
}

/* How many machines there are, and which one this is. */
static ls_status find_place(predict_measure *m, ls_err *err)
{
    cli_args args = *m->args;
    predict_counts nodes = {0};
    cli_ranks ranks = {0};
    ls_status st = LS_OK;

    args.ranks = 1;
    if (args.node_counts != NULL) LS_TRY(predict_counts_read(&nodes, "--nodes", args.node_counts, err));
    args.nodes = nodes.n > 0 ? nodes.of[0] : 0;
    LS_TRY(cli_ranks_bare(&ranks, &args, err));
    m->node = ranks.start.place.node;
    m->nodes = ranks.start.place.nodes;
    if (ranks.start.kind == LS_START_RANK)
        LS_TRY(
            ls_fail(err, LS_INVALID,
                    "this process is one of several that mpirun or srun has started: let them run `lockstep "
                    "bench --collectives --export FILE.json`, then calibrate from the files"));
out:
    return st;
}

static ls_status plan_measurements(predict_measure *m, ls_err *err)
{
    const int cores = ls_launch_cores();
    int most;
    ls_status st = LS_OK;

    LS_TRY(find_place(m, err));
    if (m->args->rank_counts != NULL)
        LS_TRY(predict_counts_read(&m->ranks, "--ranks", m->args->rank_counts, err));
    else
        default_ranks(&m->ranks, cores);
    if (m->args->model != NULL) LS_TRY(choose_batches(m, err));
    most = m->ranks.of[m->ranks.n - 1];
    m->threads = m->args->threads > 0 ? m->args->threads : cores > most ? cores / most : 1;
    m->full = m->full / m->threads > 1 ? m->full / m->threads : 1;
    if (most == 1 && m->nodes == 1 && m->batches.n == 0)
        LS_TRY(ls_fail(err, LS_INVALID, "--ranks 1: one rank exchanges nothing; add 2, or an EXPERIMENT"));
out:
    return st;
}

/* -- output -----------------------------------------------------------------------------------------------
 */

/* A figure without an error is one that times do not tell from others, or from 0; a rate without one is what
 * the processors reach. */
static const char *with_error(double x, double error, bool is_rate, const char *(*show)(double, char *),
                              char buf[64])
{
    char text[LS_UNITS_TEXT];

    if (isfinite(error))
        snprintf(buf, 64, "%s +- %.0f %%", show(x, text), 100 * error);
    else if (is_rate)
        snprintf(buf, 64, "%s or more", show(x, text));
    else
        snprintf(buf, 64, "about %s", x > 0 ? show(x, text) : "0");
    return buf;
}

static const char *show_rate(double bytes_s, char *buf)
{
    snprintf(buf, LS_UNITS_TEXT, "%.3g GB/s", bytes_s * 1e-9);
    return buf;
}

static const char *show_core(double s_per_byte, char *buf)
{
    snprintf(buf, LS_UNITS_TEXT, "%.3g s/GB", s_per_byte * 1e9);
    return buf;
}

static void print_link(const char *name, const ls_fit_link *l)
{
    char a[64], b[64], c[64], d[64];

    if (!l->measured) {
        printf("  %-11s not known\n", name);
        return;
    }
    printf("  %-11s latency %s, rate %s\n", name,
           with_error(l->figure[LS_FIT_LATENCY], l->error[LS_FIT_LATENCY], false, ls_units_seconds, a),
           with_error(l->figure[LS_FIT_RATE], l->error[LS_FIT_RATE], true, show_rate, b));
    printf("              core: %s a message, %s\n",
           with_error(l->figure[LS_FIT_MESSAGE], l->error[LS_FIT_MESSAGE], false, ls_units_seconds, c),
           with_error(l->figure[LS_FIT_CORE], l->error[LS_FIT_CORE], false, show_core, d));
}

static void print_network(const ls_calibration *c)
{
    const ls_fit *f = &c->fit;

    if (!c->has_network) {
        printf("network       not measured: `lockstep bench --collectives -n 2 --export FILE.json`, or "
               "--ranks\n");
        return;
    }
    printf("network       from %d times of exchanges, of up to %d ranks on %d machine%s\n", f->used,
           (int)f->measured_ranks, (int)f->measured_nodes, f->measured_nodes == 1 ? "" : "s");
    print_link("inside", &f->inside);
    print_link("node", &f->node);
    printf("  error       %.0f %% of a time computed from these", 100 * f->error);
    if (f->error_per_doubling > 0)
        printf("; %.0f %% for each doubling beyond %d ranks", 100 * f->error_per_doubling,
               (int)f->measured_ranks);
    printf("\n");
    for (int i = 0; i < f->n_notes; i++)
        printf("%s%s\n", i == 0 ? "not known     " : "              ", f->note[i]);
}

static void print_crowding(const ls_machine *m)
{
    for (int32_t i = 0; i < m->n_crowding; i++) {
        const ls_crowding *c = &m->crowding[i];
        char batch[48] = "";
        if (c->ranks < 2) continue;
        if (c->batch > 0) snprintf(batch, sizeof batch, " with batch %.0f", c->batch);
        printf("  crowding    %d ranks of a machine%s compute %.2f times as long as one alone\n",
               (int)c->ranks, batch, c->factor);
    }
    if (m->n_uneven > 0)
        printf(
            "  uneven      of %d such ranks the slowest takes %.2f times as long as the median +- %.0f %%\n",
            (int)m->n_uneven, m->uneven[m->n_uneven - 1], 100 * m->uneven_error);
    if (m->exchanging_s_per_byte * 1e9 >= 0.005)
        printf("  exchanging  between machines: ranks compute %.2f s longer for each GB\n",
               m->exchanging_s_per_byte * 1e9);
}

/* A step of several ranks as measured, and as all the rest says. */
static void print_together(const ls_together *t)
{
    char measured[LS_UNITS_TEXT], computed[LS_UNITS_TEXT];

    printf("  checked     %s, batch %.0f, %d ranks on %d machine%s: %s measured, %s computed (%+.1f %%)\n",
           t->experiment, t->batch, (int)t->ranks, (int)t->nodes, t->nodes == 1 ? "" : "s",
           ls_units_seconds(t->measured_s, measured), ls_units_seconds(t->computed_s, computed),
           100 * (t->computed_s / t->measured_s - 1));
}

static void print_machine(const ls_calibration *c)
{
    const ls_machine *m = &c->machine;

    if (!c->has_machine) {
        printf("machine       not measured: name an EXPERIMENT, or add files of `lockstep bench EXPERIMENT "
               "--export`\n");
        return;
    }
    printf(
        "machine       %s: device %s, %d thread%s a rank; %d nodes and %d kinds of ops, error %.1f %% of a "
        "step\n",
        m->name, m->device, (int)m->threads, m->threads == 1 ? "" : "s", (int)m->n_nodes, (int)m->n_ops,
        100 * m->error);
    print_crowding(m);
    for (int32_t i = 0; i < m->n_together; i++) print_together(&m->together[i]);
    if (m->n_jitter == 0) printf("not known     machine: how much steps vary\n");
}

static void print_text(const ls_calibration *c, const char *path)
{
    print_network(c);
    print_machine(c);
    printf("written       %s\n", path);
}

static void print_json(const ls_calibration *c, const char *path)
{
    json_t *notes = json_array();

    for (int i = 0; i < c->fit.n_notes; i++) json_array_append_new(notes, json_string(c->fit.note[i]));
    cli_print_json_take(json_pack("{s:s, s:s, s:b, s:b, s:f, s:f, s:o, s:o}", "event", "calibration", "file",
                                  path, "has_network", (int)c->has_network, "has_machine",
                                  (int)c->has_machine, "network_error", c->fit.error,
                                  "network_error_per_doubling", c->fit.error_per_doubling, "not_known", notes,
                                  "calibration", ls_calibration_json(c)));
}

/* -- the command ------------------------------------------------------------------------------------------
 */

static ls_status conclude(const words *w, const predict_measure *m, const char *out, ls_err *err)
{
    const char *paths[2 * PREDICT_FILES];
    ls_calibration c = {0};
    int n = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < m->n_files; i++) paths[n++] = m->file[i];
    for (int i = 0; i < w->n_files; i++) paths[n++] = w->files[i];
    LS_TRY(ls_calibration_make(&c, paths, n, err));
    LS_TRY(ls_calibration_write(&c, out, err));
    if (w->args.json)
        print_json(&c, out);
    else
        print_text(&c, out);
out:
    ls_calibration_release(&c);
    return st;
}

/* A batch script that measures on nodes of a cluster what a calibration needs of them. */
static ls_status print_script(const words *w, ls_err *err)
{
    const cli_args *a = &w->args;
    const char *words[64] = {"bench"};
    char name[64], log[LS_PATH_MAX], folder[LS_PATH_MAX], program[LS_PATH_MAX], file[96];
    char steps[24], seconds[32];
    predict_counts nodes;
    ls_text text = {0};
    int n = 1;
    ls_status st = LS_OK;

    LS_TRY(predict_counts_read(&nodes, "--nodes", a->node_counts, err));
    snprintf(name, sizeof name, "calibrate-%dx%d", nodes.of[0], a->ranks_per_node);
    snprintf(file, sizeof file, "%s.json", name);
    snprintf(steps, sizeof steps, "%d", a->steps);
    snprintf(seconds, sizeof seconds, "%g", a->seconds);
    if (getcwd(folder, sizeof folder) == NULL || !ls_program_path(program, sizeof program))
        LS_TRY(ls_fail(err, LS_IO, "this folder, or where this program lies, cannot be told"));
    if (snprintf(log, sizeof log, "%s/%s.log", folder, name) >= (int)sizeof log)
        LS_TRY(ls_fail(err, LS_INVALID, "the path of this folder is too long"));
    if (a->n_settings > 50) LS_TRY(ls_fail(err, LS_INVALID, "too many settings"));
    words[n++] = a->model != NULL ? a->model : "--collectives";
    for (int i = 0; i < a->n_settings; i++) words[n++] = a->settings[i];
    if (a->sizes != NULL) words[n++] = "--sizes", words[n++] = a->sizes;
    if (a->steps > 0) words[n++] = "--steps", words[n++] = steps;
    if (a->seconds > 0) words[n++] = "--seconds", words[n++] = seconds;
    words[n++] = "--export";
    words[n++] = file;
    {
        const ls_submit_request q = {.name = name,
                                     .nodes = nodes.of[0],
                                     .ranks_per_node = a->ranks_per_node,
                                     .threads = a->threads,
                                     .folder = folder,
                                     .program = program,
                                     .words = words,
                                     .n_words = n,
                                     .log = log};
        LS_TRY(ls_submit_check(&q, err));
        LS_TRY(ls_submit_script(&text, &q, LS_SUBMIT_SLURM, err));
        printf("%s", text.data);
    }
out:
    ls_text_release(&text);
    return st;
}

/* What others compute meanwhile is in all times, and predictions are made from these. */
static void warn_if_busy(void)
{
    ls_study look = {0};

    ls_study_look_around(&look);
    if (look.busy >= LS_STUDY_BUSY)
        ls_log(LS_LOG_WARN,
               "others keep %.0f %% of this machine's processors busy: a calibration is worth what the "
               "machine was left alone",
               100 * look.busy);
}

/* Measures unless there are files alone; then one file comes of all. */
static ls_status calibrate(const words *w, ls_err *err)
{
    const cli_args *a = &w->args;
    const char *out = a->out != NULL ? a->out : DEFAULT_OUT;
    predict_measure *m = ls_alloc(LS_MEM_CLI, sizeof *m);
    ls_err why = {0};
    ls_status st = LS_OK;

    if (m == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    m->args = a;
    if (w->n_files == 0 || a->model != NULL || a->rank_counts != NULL) LS_TRY(plan_measurements(m, err));
    if (m->node == 0 && ls_replace_check(out, &why) != LS_OK)
        LS_TRY(ls_fail(err, LS_INVALID, "--out: the file cannot be written: %s", why.text));
    if (m->ranks.n > 0) {
        warn_if_busy();
        LS_TRY(predict_measure_run(m, err));
    }
    if (m->node > 0)
        printf("measured together with machine 0, which writes the calibration\n");
    else
        LS_TRY(conclude(w, m, out, err));
out:
    if (st != LS_OK) predict_measure_keep(m, err);
    predict_measure_release(m);
    ls_free(m);
    return st;
}

int predict_calibrate(const cli_args *args)
{
    words w = {0};
    ls_err err = {0};
    ls_status st = LS_OK;

    LS_TRY(take_apart(&w, args, &err));
    LS_TRY(args->script ? print_script(&w, &err) : calibrate(&w, &err));
out:
    ls_free(w.args.settings);
    if (st == LS_CANCELLED) {
        fprintf(stderr, "lockstep predict: stopped on request; nothing was written\n");
        return CLI_STOPPED;
    }
    return st == LS_OK ? CLI_DONE : cli_fail("predict", &err);
}
