/* bench.c: `lockstep bench`: the training step timed on all ranks, on made-up data or on the experiment's. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/replace.h"
#include "bench.h"
#include "profile.h"
#include "report_parts.h"

/* -- ranks ------------------------------------------------------------------------------------------------
 */

/* What of the command line decides which steps are taken, and how many. */
typedef struct orders {
    double seconds;
    int steps, turn;
    bool profile, export;
} orders;

static ls_status run(const bench_job *given, const ls_place *place, ls_comm *comm, ls_err *err)
{
    cli_args args = *given->args;
    bench_job j = *given;
    orders o = {.seconds = args.seconds,
                .steps = args.steps,
                .turn = args.turn,
                .profile = args.profile,
                .export = args.export != NULL};
    ls_rehearsal x[BENCH_VARIANTS] = {0};
    bench_results r = {0};
    ls_status st = LS_OK;

    if (place->size == 1) comm = NULL;
    /* Ranks on other machines are started by command lines of their own, on which a part may be missing
     * (--export is needed on one machine only): what rank 0 was told goes for all. */
    if (comm != NULL) LS_TRY(ls_comm_broadcast(comm, &o, sizeof o, 0, "what is to be measured", err));
    args.seconds = o.seconds;
    args.steps = o.steps;
    args.turn = o.turn;
    j.args = &args;
    LS_TRY(bench_measure(x, &j, place, comm, &r, err));
    if (o.profile) LS_TRY(profile_print(&x[0], args.json, r.of[0].times.spread.p50, err));
    if (place->rank == 0) j.print(&x[0], &j, &r);
    if (o.export) LS_TRY(bench_export(&x[0], &j, &r, err));
out:
    bench_beside_end(&j.beside);
    if (st != LS_OK && comm != NULL) ls_comm_abort(comm, err->text);
    bench_release(x, &r);
    return st;
}

/* --beside: one rank measures as if it were alone, the others compute. */
static int beside_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    bench_job j = *(bench_job *)arg;
    ls_place alone = *place;
    ls_err err = {0};
    ls_status st;

    alone.size = alone.local_size = 1;
    j.beside.comm = comm;
    st = place->rank == 0 ? run(&j, &alone, NULL, &err) : bench_beside_run(&j.beside, &j, place, &err);
    if (st == LS_OK) return CLI_DONE;
    ls_comm_abort(comm, err.text);
    return cli_fail_in_rank("bench", place, &err);
}

static int bench_rank(const ls_place *place, ls_comm *comm, void *arg)
{
    ls_err err = {0};

    if (run(arg, place, comm, &err) != LS_OK) return cli_fail_in_rank("bench", place, &err);
    return CLI_DONE;
}

/* -- variants ---------------------------------------------------------------------------------------------
 */

/* Loads variant i with the settings of `args` and one more (may be NULL).  data=real and data=synthetic are
 * this command's own and no settings of the experiment. */
static ls_status open_variant(bench_job *j, int i, const char *more, ls_err *err)
{
    static const char key[] = "data=";
    cli_args args = *j->args;
    ls_status st = LS_OK;

    args.settings = ls_alloc(LS_MEM_CLI, sizeof *args.settings * ((size_t)args.n_settings + 1));
    if (args.settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    args.n_settings = 0;
    for (int k = 0; k < j->args->n_settings + (more != NULL); k++) {
        const char *setting = k < j->args->n_settings ? j->args->settings[k] : more;
        if (strncmp(setting, key, strlen(key)) != 0) {
            args.settings[args.n_settings++] = setting;
            continue;
        }
        j->real[i] = strcmp(setting, "data=real") == 0;
        if (!j->real[i] && strcmp(setting, "data=synthetic") != 0) {
            st = ls_fail(err, LS_INVALID, "%s: expected data=real or data=synthetic", setting);
            goto out;
        }
    }
    LS_TRY(cli_ranks_open(&j->ranks[i], args.model, true, &args, err));
    j->n = i + 1;
out:
    ls_free(args.settings);
    return st;
}

/* Only our own formats have a place for a second variant. */
static bool shows_other(const bench_job *j)
{
    return j->print == bench_print_text || j->print == bench_print_json;
}

/* Both sides are timed in turns by the same processes, so what these are made of cannot be compared. */
static bool is_of_the_processes(const char *setting)
{
    static const char *const keys[] = {"ranks", "device", "max_restarts"};
    const size_t length = strcspn(setting, "=");

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strlen(keys[i]) == length && memcmp(keys[i], setting, length) == 0) return true;
    return false;
}

/* What the experiment is timed against: --against KEY=VALUE; a KEY that is true or false alone is turned
 * round.  The reproducible mode always shows its price. */
static ls_status choose_other(bench_job *j, ls_err *err)
{
    ls_config *cfg = j->ranks[0].experiment.cfg;
    const char *key = j->args->against;
    int at;

    if (key == NULL && ls_config_bool(cfg, "reproducible") && shows_other(j)) key = "reproducible";
    if (j->args->turn > LS_TURN_MAX)
        return ls_fail(err, LS_INVALID, "--turn %d: a turn has at most %d steps", j->args->turn,
                       (int)LS_TURN_MAX);
    if (key == NULL && j->args->turn > 0)
        return ls_fail(err, LS_INVALID,
                       "--turn %d: there is nothing to take turns with; add --against KEY=VALUE",
                       j->args->turn);
    if (key == NULL) return LS_OK;
    if (is_of_the_processes(key))
        return ls_fail(err, LS_INVALID,
                       "--against %s: both sides run in turns on the same ranks and device; `lockstep scale` "
                       "compares numbers of ranks, and `bench` twice with --json, then `bench --compare`, "
                       "devices",
                       key);
    at = ls_config_find(cfg, key);
    if (strchr(key, '=') != NULL)
        snprintf(j->other, sizeof j->other, "%s", key);
    else if (at >= 0 && ls_config_at(cfg, at).kind == LS_SETTING_BOOL)
        snprintf(j->other, sizeof j->other, "%s=%s", key, ls_config_bool(cfg, key) ? "false" : "true");
    else
        return ls_fail(err, LS_INVALID,
                       "--against %s: write key=value, or the name of a setting that is true or false", key);
    return LS_OK;
}

/* -- the command ------------------------------------------------------------------------------------------
 */

/* The iterations of Horovod's benchmark, where nothing else is said. */
enum { HOROVOD_STEPS = 10 * LS_ITERATION_STEPS };

/* What follows from --format. */
static ls_status choose_format(cli_args *args, bench_job *j, ls_err *err)
{
    const char *name = args->format != NULL ? args->format : args->json ? "json" : "text";
    ls_status st = bench_format(name, &j->print, err);

    if (st != LS_OK) return st;
    if (args->json && j->print != bench_print_json)
        return ls_fail(err, LS_INVALID, "--json and --format %s: choose one", name);
    args->json = j->print == bench_print_json;
    args->quiet = !shows_other(j);
    if (!shows_other(j) && (args->against != NULL || args->profile))
        return ls_fail(err, LS_INVALID, "--format %s has no place for %s", name,
                       args->profile ? "--profile" : "--against");
    if (strcmp(name, "horovod") == 0 && args->steps == 0 && args->seconds <= 0) args->steps = HOROVOD_STEPS;
    return LS_OK;
}

ls_status cli_bench_check(const cli_args *args, ls_err *err)
{
    if (args->collectives) return bench_collectives_check(args, err);
    if (args->sizes != NULL)
        return ls_fail(err, LS_INVALID, "--sizes %s: of which vectors?  Add --collectives", args->sizes);
    if (args->compare_two && (args->device != NULL || args->ranks > 0))
        return ls_fail(err, LS_INVALID, "--compare A B measures nothing: leave %s out",
                       args->device != NULL ? "--device" : "-n");
    if (args->compare_two && (args->model == NULL || args->n_settings != 1))
        return ls_fail(err, LS_INVALID, "--compare takes two files with results of `lockstep bench --json`");
    return LS_OK;
}

/* What would be refused after the measurement is refused before it. */
static ls_status check_parts(const bench_job *j, ls_err *err)
{
    ls_err why = {0};

    if (j->args->export != NULL && j->ranks[0].start.place.rank == 0 &&
        ls_replace_check(j->args->export, &why) != LS_OK)
        return ls_fail(err, LS_INVALID, "--export: the file cannot be written: %s", why.text);
    if ((!j->args->profile && j->args->export == NULL) ||
        !ls_config_bool(j->ranks[0].experiment.cfg, "reproducible"))
        return LS_OK;
    return ls_fail(err, LS_INVALID, "%s times one plan; reproducible=true runs several at a time",
                   j->args->profile ? "--profile" : "--export");
}

enum { BESIDE_MOST = 4096 };

/* --beside is for ranks that share processors, and measures one of them. */
static ls_status check_beside(const bench_job *j, ls_err *err)
{
    const ls_place *place = &j->ranks[0].start.place;

    if (j->args->beside == 0) return LS_OK;
    if (j->args->beside < 0 || j->args->beside > BESIDE_MOST)
        return ls_fail(err, LS_INVALID, "--beside %d: expected 1 to %d processes", j->args->beside,
                       BESIDE_MOST);
    if (place->size > 1 || place->nodes > 1)
        return ls_fail(err, LS_INVALID,
                       "--beside %d: ranks have each other already; leave it out, or take -n 1",
                       j->args->beside);
    if (strcmp(ls_config_text(j->ranks[0].experiment.cfg, "device"), "cpu") != 0)
        return ls_fail(err, LS_INVALID, "--beside %d: it is for processors that ranks share; device=cpu",
                       j->args->beside);
    return LS_OK;
}

static int measure(const cli_args *given)
{
    cli_args args = *given;
    bench_job j = {.args = &args};
    ls_err err = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(choose_format(&args, &j, &err));
    LS_TRY(open_variant(&j, 0, NULL, &err));
    if (args.list_settings) {
        report_settings(&j.ranks[0].experiment, args.json);
        goto out;
    }
    LS_TRY(check_parts(&j, &err));
    LS_TRY(check_beside(&j, &err));
    LS_TRY(choose_other(&j, &err));
    if (j.other[0] != '\0') LS_TRY(open_variant(&j, 1, j.other, &err));
    if (j.ranks[0].start.kind != LS_START_RANK) j.cores = ls_launch_cores();
    LS_TRY(bench_beside_open(&j.beside, args.beside, &j.ranks[0], &err));
    if (args.beside == 0)
        code = cli_ranks_run(&j.ranks[0], "bench", bench_rank, &j);
    else
        LS_TRY(ls_launch_run(&j.beside.start, &j.beside.options, beside_rank, &j, &code, &err));
out:
    bench_beside_close(&j.beside);
    for (int i = 0; i < BENCH_VARIANTS; i++) cli_ranks_release(&j.ranks[i]);
    return st == LS_OK ? code : cli_fail("bench", &err);
}

int cli_bench(const cli_args *args)
{
    if (args->collectives) return bench_collectives(args);
    return args->compare_two ? bench_compare(args) : measure(args);
}
