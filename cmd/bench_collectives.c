/* bench_collectives.c: `lockstep bench --collectives`: exchanges between ranks timed by themselves, for all
 * lengths; what `lockstep predict --calibrate` learns a network from. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/replace.h"
#include "base/units.h"
#include "bench.h"
#include "bench/collectives.h"

/* What all ranks know. */
typedef struct job {
    const cli_args *args;
    ls_collectives_args how;
    int cores;
} job;

ls_status bench_collectives_check(const cli_args *args, ls_err *err)
{
    const char *extra = args->compare_two                                                  ? "--compare"
                        : args->device != NULL                                             ? "--device"
                        : args->against != NULL                                            ? "--against"
                        : args->turn > 0                                                   ? "--turn"
                        : args->profile                                                    ? "--profile"
                        : args->format != NULL                                             ? "--format"
                        : args->list_settings                                              ? "--settings"
                        : args->model != NULL                                              ? args->model
                        : args->n_settings > 0 && args->settings[0] != args->ranks_setting ? args->settings[0]
                                                                                           : NULL;

    if (extra != NULL)
        return ls_fail(err, LS_INVALID, "--collectives times exchanges of any experiment: leave \"%s\" out",
                       extra);
    if (args->threads > CLI_MAX_THREADS)
        return ls_fail(err, LS_INVALID, "--threads %d: more than %d make no sense", args->threads,
                       CLI_MAX_THREADS);
    if (args->steps > LS_COLLECTIVES_ROUNDS)
        return ls_fail(err, LS_INVALID, "--steps %d: there are at most %d rounds", args->steps,
                       (int)LS_COLLECTIVES_ROUNDS);
    return LS_OK;
}

/* -- output -----------------------------------------------------------------------------------------------
 */

static void print_json(const ls_collective_times *t, int64_t now)
{
    for (int i = 0; i < t->n; i++) cli_print_json_take(ls_collective_json(t, i, LS_VERSION, now));
}

static ls_status write_file(const ls_collective_times *t, const char *path, int64_t now, ls_err *err)
{
    ls_text text = {0};
    ls_status st = LS_OK;

    for (int i = 0; i < t->n; i++) {
        json_t *o = ls_collective_json(t, i, LS_VERSION, now);
        ls_json_add(&text, o, JSON_COMPACT | JSON_REAL_PRECISION(9));
        ls_text_add(&text, "\n");
        json_decref(o);
    }
    st = text.failed ? ls_fail(err, LS_NOMEM, "no memory for %s", path)
                     : ls_replace_file(path, text.data, text.length, err);
    ls_text_release(&text);
    return st;
}

static void print_row(const ls_collective_time *t, bool several)
{
    char bytes[32], mid[LS_UNITS_TEXT], lo[LS_UNITS_TEXT], hi[LS_UNITS_TEXT], core[LS_UNITS_TEXT], sent[32],
        range[2 * LS_UNITS_TEXT + 8];

    snprintf(range, sizeof range, "%s to %s", ls_units_seconds(t->seconds.p16, lo),
             ls_units_seconds(t->seconds.p84, hi));
    printf("%-14s %-4s %10s %10s  %-24s %9.3f %10s", ls_collective_name(t->kind),
           t->wire == LS_WIRE_F32 ? "f32" : "bf16", ls_text_bytes((double)t->bytes, bytes),
           ls_units_seconds(t->seconds.p50, mid), range, (double)t->bytes / t->seconds.p50 * 1e-9,
           ls_units_seconds(t->core_s, core));
    printf(several ? " %10s\n" : "\n", ls_text_bytes(t->sent_bytes, sent));
}

static void print_text(const ls_collective_times *t)
{
    const ls_collective_time *a = &t->of[0];
    const bool several = a->hosts > 1;

    if (a->oversubscribed)
        printf("oversubscribed: more threads than the %d cores at hand; this says nothing of scaling\n",
               t->cores);
    printf("collectives   %d ranks on %d machine%s, %d rounds, in turns\n", a->ranks, a->hosts,
           several ? "s" : "", a->rounds);
    printf("%-14s %-4s %10s %10s  %-24s %9s %10s%s\n", "", "wire", "vector", "median", "central 68 %", "GB/s",
           "core", several ? "       sent" : "");
    for (int i = 0; i < t->n; i++)
        if (several || t->of[i].wire == LS_WIRE_F32) print_row(&t->of[i], several);
    printf("GB/s: bytes of the vector over its time.  core: what it takes of a rank that computes "
           "meanwhile.%s\n",
           several ? "  sent: by the\nmachine that sends most." : "");
}

/* -- ranks ------------------------------------------------------------------------------------------------
 */

static void tick(void *ctx, int done, int planned)
{
    (void)ctx;
    fprintf(stderr, done < planned ? "\r\033[Kround %d of %d" : "\r\033[K", done, planned);
}

static ls_status run(const job *j, const ls_place *place, ls_comm *comm, ls_err *err)
{
    ls_collectives_args how = j->how;
    ls_collective_times t = {0};
    ls_crowd crowd;
    int64_t now;
    ls_status st = LS_OK;

    if (place->size == 1)
        return ls_fail(err, LS_INVALID, "one rank exchanges nothing: -n 2 starts two, or mpirun and srun do");
    if (place->rank == 0 && !j->args->json && isatty(STDERR_FILENO)) how.progress = tick;
    LS_TRY(ls_crowd_look(&crowd, comm, 1, j->cores, err));
    LS_TRY(ls_collectives_measure(&t, &how, &crowd, comm, err));
    if (place->rank != 0) goto out;
    now = (int64_t)time(NULL);
    if (j->args->export != NULL) LS_TRY(write_file(&t, j->args->export, now, err));
    if (j->args->json)
        print_json(&t, now);
    else
        print_text(&t);
out:
    if (st != LS_OK) ls_comm_abort(comm, err->text);
    ls_collective_times_release(&t);
    return st;
}

static int rank_main(const ls_place *place, ls_comm *comm, void *arg)
{
    ls_err err = {0};

    if (run(arg, place, comm, &err) != LS_OK) return cli_fail_in_rank("bench", place, &err);
    return CLI_DONE;
}

int bench_collectives(const cli_args *args)
{
    job j = {.args = args, .how = {.rounds = args->steps, .seconds = args->seconds}};
    cli_ranks ranks = {0};
    ls_err err = {0}, why = {0};
    ls_status st = LS_OK;
    int code = CLI_DONE;

    LS_TRY(ls_collectives_sizes(&j.how, args->sizes, &err));
    LS_TRY(cli_ranks_bare(&ranks, args, &err));
    if (args->export != NULL && ranks.start.place.rank == 0 && ls_replace_check(args->export, &why) != LS_OK)
        LS_TRY(ls_fail(&err, LS_INVALID, "--export: the file cannot be written: %s", why.text));
    if (ranks.start.kind != LS_START_RANK) j.cores = ls_launch_cores();
    code = cli_ranks_run(&ranks, "bench", rank_main, &j);
out:
    return st == LS_OK ? code : cli_fail("bench", &err);
}
