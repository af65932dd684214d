/* predict_ask.c: `lockstep predict EXPERIMENT`: what a step takes on machines that are not here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/text.h"
#include "plan.h"
#include "predict_table.h"
#include "train/alternatives.h"

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

static predict_step step_of(const predict_table *t, const cli_experiment *x, const cli_args *args)
{
    return (predict_step){.trial = x->trial,
                          .cfg = x->cfg,
                          .machine = &t->machine,
                          .ranks_per_node = t->placement.ranks_per_node,
                          .threads = args->threads,
                          .step_time = t->step_time};
}

static ls_status open_ways(predict_table *t, cli_experiment *x, const cli_args *args, ls_err *err)
{
    char strategies[256];
    const char *list = strategies;
    ls_status st = LS_OK;

    LS_TRY(plan_as_there(t, x, err));
    LS_TRY(cli_strategies(x->cfg, args->strategy, strategies, sizeof strategies, err));
    while (t->n_ways < PREDICT_WAYS &&
           ls_alternative_next(&list, t->way[t->n_ways].strategy, sizeof t->way[0].strategy)) {
        const predict_step step = step_of(t, x, args);
        LS_TRY(predict_way_open(&t->way[t->n_ways++], &step, err));
    }
out:
    return st;
}

/* -- the answers ------------------------------------------------------------------------------------------
 */

static ls_status answer_all(predict_table *t, const int *counts, int n, ls_err *err)
{
    ls_status st = LS_OK;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < t->n_ways; k++) {
            if (!LS_GROW(LS_MEM_CLI, t->rows, t->n + 1, t->cap))
                LS_TRY(ls_fail(err, LS_NOMEM, "no memory for a table"));
            t->rows[t->n] = (predict_row){.way = k, .ranks = counts[i]};
            LS_TRY(predict_answer_row(t, &t->rows[t->n++], err));
        }
out:
    return st;
}

/* Other settings are compiled for those who are shown what would help: of the last row, or of all. */
static ls_status open_variants(predict_table *t, const cli_experiment *x, const cli_args *args, ls_err *err)
{
    const predict_step step = step_of(t, x, args);
    int last = -1;
    ls_status st = LS_OK;

    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] == '\0' && t->rows[i].ranks > 1) last = t->rows[i].way;
    for (int k = 0; k < t->n_ways; k++)
        if (args->out != NULL || k == last) LS_TRY(predict_variants_open(&t->way[k], &step, err));
out:
    return st;
}

static ls_status check_any(const predict_table *t, ls_err *err)
{
    for (int i = 0; i < t->n; i++)
        if (t->rows[i].why[0] == '\0') return LS_OK;
    return t->n == 0 ? LS_OK : ls_fail(err, LS_INVALID, "%s", t->rows[0].why);
}

/* -- the question -----------------------------------------------------------------------------------------
 */

static ls_status parse_placement(predict_table *t, const char *word, ls_err *err)
{
    char *end;

    t->placement.kind = LS_PLACE_CONTIGUOUS;
    if (word == NULL || strcmp(word, "contiguous") == 0) return LS_OK;
    t->placement.kind = LS_PLACE_RANDOM;
    t->placement.seed = 1;
    if (strcmp(word, "random") == 0) return LS_OK;
    if (strncmp(word, "random:", 7) == 0) {
        t->placement.seed = strtoull(word + 7, &end, 10);
        if (word[7] >= '0' && word[7] <= '9' && *end == '\0') return LS_OK;
    }
    return ls_fail(err, LS_INVALID, "--placement %s: expected contiguous, random or random:SEED", word);
}

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
    return parse_placement(t, args->placement, err);
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
    ls_machine_release(&t->machine);
    ls_network_release(&t->network);
    ls_text_release(&t->near.unmatched);
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

int predict_ask(const cli_args *given)
{
    cli_args own = *given;
    const cli_args *args = &own;
    const char **files = ls_alloc(LS_MEM_CLI, sizeof *files * (CLI_LIST_MAX + (size_t)given->n_settings));
    int n_files;
    cli_experiment x = {0};
    predict_table *t = ls_alloc(LS_MEM_CLI, sizeof *t);
    char page[LS_PATH_MAX] = "";
    int counts[COUNTS_MAX] = {1, 2, 4, USUAL_RANKS}, n = 4;
    ls_err err = {0};
    ls_status st = LS_OK;

    if (t == NULL || files == NULL) LS_TRY(ls_fail(&err, LS_NOMEM, "no memory"));
    n_files = predict_measured_files(&own, files);
    memset(t, 0, sizeof *t);
    LS_TRY(parse_words(t, args, &err));
    if (args->rank_counts != NULL)
        LS_TRY(cli_counts("--ranks", args->rank_counts, counts, COUNTS_MAX, &n, &err));
    LS_TRY(open_both(t, args, &err));
    LS_TRY(cli_experiment_configure(&x, args, &err));
    t->name = x.name;
    t->batch = ls_config_int(x.cfg, "batch.per_rank");
    LS_TRY(open_ways(t, &x, args, &err));
    LS_TRY(answer_all(t, counts, n, &err));
    LS_TRY(check_any(t, &err));
    if (n_files > 0) LS_TRY(predict_measured_add(t, args, files, n_files, &err));
    if (args->out != NULL || (!args->json && !args->csv)) LS_TRY(open_variants(t, &x, args, &err));
    if (args->out != NULL) LS_TRY(predict_page(t, args->out, page, sizeof page, &err));
    if (args->json)
        predict_print_json(t, page);
    else if (args->csv)
        predict_print_csv(t);
    else
        predict_print_text(t);
    if (!args->json && !args->csv && page[0] != '\0') printf("report        %s\n", page);
out:
    if (t != NULL) release(t);
    ls_free(t);
    ls_free(files);
    cli_experiment_release(&x);
    return st == LS_OK ? CLI_DONE : cli_fail("predict", &err);
}
