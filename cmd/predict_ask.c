/* predict_ask.c: `lockstep predict EXPERIMENT`: what a step takes on machines that are not here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/folders.h"
#include "base/grow.h"
#include "base/replace.h"
#include "base/text.h"
#include "plan.h"
#include "predict.h"
#include "predict_run.h"
#include "predict_table.h"
#include "train/alternatives.h"
#include "train/limit.h"

enum { COUNTS_MAX = 64, USUAL_RANKS = 8 };

/* -- the step ---------------------------------------------------------------------------------------------
 */

/* Plans are compiled for the device at hand.  On GPUs no variables are kept once for a machine, and no
 * updates left to the next step (train/placement.c): what describes one asks for neither. */
static ls_status plan_as_there(const predict_table *t, cli_experiment *x, ls_err *err)
{
    ls_status st = LS_OK;

    if (strcmp(t->machine.device, "cpu") == 0) return LS_OK;
    LS_TRY(ls_config_put(x->cfg, "parallel.share", "never", err));
    LS_TRY(ls_config_put(x->cfg, "parallel.carry", "never", err));
out:
    return st;
}

/* Memory and kernels are those of the machine's ranks, and not of the cores at hand. */
static predict_step step_of(const predict_table *t, const cli_experiment *x, const cli_args *args)
{
    const int there = t->machine.threads < CLI_MAX_THREADS ? t->machine.threads : CLI_MAX_THREADS;

    return (predict_step){.trial = x->trial,
                          .cfg = x->cfg,
                          .machine = &t->machine,
                          .ranks_per_node = t->placement.ranks_per_node,
                          .threads = args->threads > 0 ? args->threads : there,
                          .step_time = t->step_time};
}

/* Batches of a rank: those that are asked for, what ranks have of batch.global, or the experiment's. */
typedef struct batches {
    int64_t of[COUNTS_MAX]; /* 0: not to be had, for `why` */
    int n;
    bool shared; /* number i is that of the i-th number of ranks, and of no other */
    char why[COUNTS_MAX][160];
} batches;

static ls_status find_batches(batches *b, predict_table *t, ls_config *cfg, const cli_args *args,
                              const int *counts, int n, ls_err *err)
{
    const int64_t global = ls_config_int(cfg, "batch.global");
    predict_counts given;
    size_t at = 0;
    ls_status st = LS_OK;

    if (args->batches != NULL) {
        LS_TRY(predict_counts_read(&given, "--batches", args->batches, err));
        for (b->n = 0; b->n < given.n; b->n++) b->of[b->n] = given.of[b->n];
    } else if (global > 0) {
        b->shared = true;
        for (b->n = 0; b->n < n; b->n++) {
            ls_err why = {0};
            if (ls_experiment_share(cfg, counts[b->n], &b->of[b->n], &why) != LS_OK) b->of[b->n] = 0;
            ls_text_fit(b->why[b->n], sizeof b->why[0], "%s", why.text);
        }
    } else {
        b->of[b->n++] = ls_config_int(cfg, "batch.per_rank");
    }
    t->batch = b->n == 1 ? b->of[0] : 0;
    if (b->shared) {
        snprintf(t->batches, sizeof t->batches, "%lld of all ranks", (long long)global);
        goto out;
    }
    for (int i = 0; i < b->n && at < sizeof t->batches; i++)
        at += (size_t)snprintf(t->batches + at, sizeof t->batches - at, "%s%lld%s", i > 0 ? ", " : "",
                               (long long)b->of[i], i == b->n - 1 ? " per rank" : "");
out:
    return st;
}

/* A time is of one batch: what a rank takes for another does not follow from it, launches being what they
 * are.
 */
static ls_status check_step_time(const predict_table *t, const batches *b, ls_err *err)
{
    int64_t one = 0;

    for (int i = 0; t->step_time > 0 && i < b->n; i++) {
        if (b->of[i] == 0) continue;
        if (one > 0 && b->of[i] != one)
            return ls_fail(
                err, LS_INVALID,
                "--step-time %g is what a rank takes for one batch, and these are several (%s: %lld, "
                "%lld): ask about one at a time, each with its own time%s",
                t->step_time, t->batches, (long long)one, (long long)b->of[i],
                b->shared ? ", by --ranks with one number" : "");
        one = b->of[i];
    }
    return LS_OK;
}

/* Of batch.global all are one curve: the batch follows from the ranks. */
static ls_status add_way(predict_table *t, const char *strategy, const batches *b, int i, int line, int only,
                         const predict_step *step, ls_err *err)
{
    predict_way *w = &t->way[t->n_ways];

    if (t->n_ways == PREDICT_WAYS)
        return ls_fail(err, LS_INVALID, "more than %d strategies and batches%s; ask for fewer at a time",
                       (int)PREDICT_WAYS,
                       predict_by_ranks(step) ? ", each with a plan for every number of ranks" : "");
    *w = (predict_way){.batch = b->of[i], .shared = b->shared, .line = line, .only = only};
    t->n_ways++;
    snprintf(w->strategy, sizeof w->strategy, "%s", strategy);
    if (w->line == t->n_lines) {
        if (b->n > 1 && !b->shared)
            snprintf(t->line[t->n_lines++], PREDICT_LINE, "%s, %lld", strategy, (long long)w->batch);
        else
            snprintf(t->line[t->n_lines++], PREDICT_LINE, "%s", strategy);
    }
    if (w->batch > 0) return predict_way_open(w, step, err);
    ls_text_fit(w->why, sizeof w->why, "%s", b->why[i]);
    return LS_OK;
}

/* The `nth` strategy at batch i, which is one curve. */
static ls_status add_ways(predict_table *t, const char *strategy, int nth, const batches *b, int i,
                          const int *counts, int n, const predict_step *step, ls_err *err)
{
    const int line = b->shared ? nth : t->n_lines;
    ls_status st = LS_OK;

    if (b->shared || !predict_by_ranks(step))
        return add_way(t, strategy, b, i, line, b->shared ? counts[i] : 0, step, err);
    for (int c = 0; c < n; c++) LS_TRY(add_way(t, strategy, b, i, line, counts[c], step, err));
out:
    return st;
}

const char *predict_line_of(const predict_table *t, const predict_row *r)
{
    return t->line[t->way[r->way].line];
}

/* -- the answers ------------------------------------------------------------------------------------------
 */

static ls_status add_row(predict_table *t, int way, int ranks, const predict_step *step, size_t limit,
                         ls_err *err)
{
    predict_row *r;
    ls_status st = LS_OK;

    if (!LS_GROW(LS_MEM_CLI, t->rows, t->n + 1, t->cap))
        return ls_fail(err, LS_NOMEM, "no memory for a table");
    r = &t->rows[t->n++];
    *r = (predict_row){.way = way, .ranks = ranks};
    LS_TRY(predict_answer_row(t, r, err));
    if (limit > 0) LS_TRY(predict_memory_of(t, r, step, limit, err));
out:
    return st;
}

/* Other settings are compiled for those who are shown what would help: of the last row, or of all. */
static ls_status open_variants(predict_table *t, const cli_args *args, const predict_step *step, ls_err *err)
{
    int last = -1;
    ls_status st = LS_OK;

    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] == '\0' && t->rows[i].ranks > 1) last = t->rows[i].way;
    for (int k = 0; k < t->n_ways; k++)
        if (args->out != NULL || k == last) LS_TRY(predict_variants_open(&t->way[k], step, err));
out:
    return st;
}

static ls_status answer_all(predict_table *t, cli_experiment *x, const cli_args *args,
                            const predict_step *step, const int *counts, int n, ls_err *err)
{
    char strategies[256], name[sizeof t->way[0].strategy];
    batches b = {.n = 0};
    size_t limit;
    ls_status st = LS_OK;

    LS_TRY(plan_as_there(t, x, err));
    LS_TRY(ls_memory_limit(x->cfg, &limit, err));
    LS_TRY(cli_strategies(x->cfg, args->strategy, strategies, sizeof strategies, err));
    LS_TRY(find_batches(&b, t, x->cfg, args, counts, n, err));
    LS_TRY(check_step_time(t, &b, err));
    for (int i = 0; i < b.n; i++) {
        const char *list = strategies;
        for (int k = 0; ls_alternative_next(&list, name, sizeof name); k++)
            LS_TRY(add_ways(t, name, k, &b, i, counts, n, step, err));
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < t->n_ways; k++)
            if (t->way[k].only == 0 || t->way[k].only == counts[i])
                LS_TRY(add_row(t, k, counts[i], step, limit, err));
    if (t->runs != NULL) {
        t->runs->wish.limits.most[LS_LIMIT_MEMORY] = (double)limit;
        LS_TRY(predict_runs_answer(t, step, err));
    }
out:
    return st;
}

/* What is too large for the memory is an answer: by how much. */
static ls_status check_any(const predict_table *t, ls_err *err)
{
    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] == '\0' || t->rows[i].unfit) return LS_OK;
    return t->n == 0 ? LS_OK : ls_fail(err, LS_INVALID, "%s", t->rows[0].why);
}

/* -- the question -----------------------------------------------------------------------------------------
 */

static ls_status parse_words(predict_table *t, const cli_args *args, ls_err *err)
{
    ls_engine engine;

    t->algorithm = LS_ALGORITHM_OURS;
    t->engine = -1;
    if (args->algorithm != NULL && !ls_algorithm_from(args->algorithm, &t->algorithm))
        return ls_fail(err, LS_INVALID,
                       "--algorithm %s: expected ours, ring, rabenseifner, doubling or hierarchical",
                       args->algorithm);
    if (args->engine != NULL) {
        if (!ls_engine_from(args->engine, &engine))
            return ls_fail(err, LS_INVALID, "--engine %s: expected closed, replay or shared", args->engine);
        t->engine = (int)engine;
    }
    return predict_placement_read(t, args->placement, err);
}

/* Both, or one file that has both. */
static ls_status open_both(predict_table *t, const cli_args *args, ls_err *err)
{
    const char *machine = args->machine != NULL ? args->machine : args->network;
    const char *network = args->network != NULL ? args->network : args->machine;
    ls_status st = LS_OK;

    if (machine == NULL)
        return ls_fail(err, LS_INVALID,
                       "neither --machine nor --network is given: `lockstep predict --calibrate --out FILE` "
                       "measures this machine, and --machine FILE takes what it wrote; `lockstep predict "
                       "--list` names machines and networks that are known");
    LS_TRY(ls_machine_open(&t->machine, machine, err));
    LS_TRY(ls_network_open(&t->network, network, err));
    t->step_time = args->step_time;
    if (t->step_time > 0 && t->machine.n_nodes > 0)
        LS_TRY(
            ls_fail(err, LS_INVALID,
                    "--step-time %g: nodes of the machine \"%s\" were measured (%d), and what a step takes "
                    "follows from them; leave --step-time out, or give a --machine that is described "
                    "(`lockstep predict --list`)",
                    t->step_time, t->machine.name, (int)t->machine.n_nodes));
    if (args->threads > 0 && args->threads != t->machine.threads && t->machine.n_nodes > 0)
        LS_TRY(
            ls_fail(err, LS_INVALID,
                    "--threads %d: the machine \"%s\" was measured with ranks of %d; leave --threads out, or "
                    "calibrate with --threads %d",
                    args->threads, t->machine.name, (int)t->machine.threads, args->threads));
    t->placement.ranks_per_node = args->ranks_per_node > 0        ? args->ranks_per_node
                                  : t->network.ranks_per_node > 0 ? t->network.ranks_per_node
                                  : t->machine.ranks_per_node > 0 ? t->machine.ranks_per_node
                                                                  : 1;
out:
    return st;
}

static void release(predict_table *t)
{
    for (int i = 0; i < t->n_ways; i++) predict_way_release(&t->way[i]);
    predict_runs_close(t->runs);
    ls_machine_release(&t->machine);
    ls_network_release(&t->network);
    ls_text_release(&t->near.unmatched);
    ls_free(t->placement.node);
    ls_free(t->rows);
}

static void list_presets(const char *heading, const char *(*preset)(int i, const char **about))
{
    const char *name, *about;

    printf("%s\n", heading);
    for (int i = 0; (name = preset(i, &about)) != NULL; i++) {
        printf("  %-20s ", name);
        cli_print_wrapped(about, 23, 23);
    }
}

int predict_list(void)
{
    list_presets("Machines (--machine):", ls_machine_preset);
    list_presets("Networks (--network):", ls_network_preset);
    return CLI_DONE;
}

/* With --batches the settings are those of a training with one of them: what excludes a batch of a rank is
 * refused, and not overruled. */
static ls_status configure(cli_experiment *x, const cli_args *args, ls_err *err)
{
    cli_args own = *args;
    predict_counts batches;
    char setting[40];
    ls_status st = LS_OK;

    if (args->batches == NULL) return cli_experiment_configure(x, args, err);
    LS_TRY(predict_counts_read(&batches, "--batches", args->batches, err));
    own.settings = ls_alloc(LS_MEM_CLI, sizeof *own.settings * ((size_t)own.n_settings + 1));
    if (own.settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = 0; i < own.n_settings; i++) own.settings[i] = args->settings[i];
    snprintf(setting, sizeof setting, "batch.per_rank=%d", batches.of[0]);
    own.settings[own.n_settings++] = setting;
    st = ls_fail_in(err, cli_experiment_configure(x, &own, err), "--batches %s", args->batches);
    ls_free(own.settings);
out:
    return st;
}

/* The folder of the page, before there is much to compute that could be lost.  `made`: it was not there. */
static ls_status make_folder(const char *folder, bool *made, ls_err *err)
{
    const bool there = access(folder, F_OK) == 0;
    char page[LS_PATH_MAX];
    ls_err why = {0};

    if (snprintf(page, sizeof page, "%s/report.html", folder) >= (int)sizeof page)
        return ls_fail(err, LS_INVALID, "--out: the path is too long");
    if (ls_folders_make(folder, &why) != LS_OK)
        return ls_fail(err, LS_INVALID, "--out: no folder can be made: %s", why.text);
    *made = !there;
    if (ls_replace_check(page, &why) != LS_OK)
        return ls_fail(err, LS_INVALID, "--out: the page cannot be written: %s", why.text);
    return LS_OK;
}

/* Everything but output: the questions of the command line, read and answered. */
static ls_status answer(predict_table *t, cli_experiment *x, const cli_args *args, bool *made_folder,
                        ls_err *err)
{
    int counts[COUNTS_MAX] = {1, 2, 4, USUAL_RANKS}, n = 4;
    predict_step step;
    predict_wish wish;
    ls_status st = LS_OK;

    LS_TRY(parse_words(t, args, err));
    LS_TRY(predict_wish_read(&wish, args, err));
    if (args->rank_counts != NULL)
        LS_TRY(cli_counts("--ranks", args->rank_counts, counts, COUNTS_MAX, &n, err));
    LS_TRY(open_both(t, args, err));
    LS_TRY(predict_placement_check(t, err));
    LS_TRY(configure(x, args, err));
    t->name = x->name;
    if (wish.until != NULL) LS_TRY(predict_runs_open(&t->runs, &wish, x, args, err));
    if (args->out != NULL) LS_TRY(make_folder(args->out, made_folder, err));
    step = step_of(t, x, args);
    LS_TRY(answer_all(t, x, args, &step, counts, n, err));
    if (args->out != NULL || (!args->json && !args->csv)) LS_TRY(open_variants(t, args, &step, err));
    LS_TRY(check_any(t, err));
out:
    return st;
}

/* The answer is printed also where its page fails. */
static ls_status print_all(const predict_table *t, const cli_args *args, ls_err *err)
{
    char page[LS_PATH_MAX] = "";
    ls_status st = LS_OK;

    if (args->out != NULL) st = predict_page(t, args->out, page, sizeof page, err);
    if (args->json)
        predict_print_json(t, page);
    else if (args->csv)
        predict_print_csv(t);
    else
        predict_print_text(t);
    if (!args->json && !args->csv && page[0] != '\0') printf("report        %s\n", page);
    return st;
}

int predict_ask(const cli_args *given)
{
    cli_args own = *given;
    const char **files = ls_alloc(LS_MEM_CLI, sizeof *files * (CLI_LIST_MAX + (size_t)given->n_settings));
    int n_files;
    cli_experiment x = {0};
    predict_table *t = ls_alloc(LS_MEM_CLI, sizeof *t);
    bool none = false, made_folder = false;
    ls_err err = {0};
    ls_status st = LS_OK;

    if (t == NULL || files == NULL) LS_TRY(ls_fail(&err, LS_NOMEM, "no memory"));
    memset(t, 0, sizeof *t);
    n_files = predict_measured_files(&own, files);
    LS_TRY(predict_measured_check(files, n_files, &err));
    LS_TRY(answer(t, &x, &own, &made_folder, &err));
    if (n_files > 0) LS_TRY(predict_measured_add(t, &own, files, n_files, &err));
    none = predict_runs_none(t);
    LS_TRY(print_all(t, &own, &err));
out:
    if (st != LS_OK && made_folder) (void)rmdir(own.out); /* unless there is something in it */
    if (t != NULL) release(t);
    ls_free(t);
    ls_free(files);
    cli_experiment_release(&x);
    if (st != LS_OK) return cli_fail("predict", &err);
    return none ? CLI_FAILED : CLI_DONE; /* there is an answer, and it is that nothing keeps the limits */
}
