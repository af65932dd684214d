/* ranks.c: what commands share that run on several ranks: the experiment meets the launcher. */
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "cli.h"

ls_status cli_load(ls_experiment *x, const char *name, const cli_args *args, int ranks, ls_err *err)
{
    const char **settings = ls_alloc(LS_MEM_CLI, sizeof *settings * ((size_t)args->n_settings + 1));
    char text[24];
    ls_status st;
    int n = args->n_settings;

    if (settings == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    for (int i = 0; i < n; i++) settings[i] = args->settings[i];
    if (ranks > 0) {
        snprintf(text, sizeof text, "ranks=%d", ranks);
        settings[n++] = text;
    }
    ls_experiment_release(x);
    st = ls_experiment_load(x, name, settings, n, err);
    ls_free(settings);
    return st;
}

/* A run that goes on, or is evaluated, may have been begun on a machine that has what this one has not. */
ls_status cli_device_check(const cli_args *args, const char *device, ls_err *err)
{
    const ls_backend *backend;
    ls_err why = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_device_find(&backend, device, err));
    if (backend->probe(&why) == LS_OK) return LS_OK;
    if (args->device != NULL)
        st = ls_fail(err, LS_INVALID, "--device %s: %s; --device cpu computes on the processors", device,
                     why.text);
    else if (args->resume != NULL)
        st = ls_fail(err, LS_INVALID,
                     "the run goes on with device %s, which cannot be used here: %s; --device cpu goes on "
                     "with it on the processors",
                     device, why.text);
    else
        st = ls_fail(err, LS_INVALID,
                     "device=%s, as the experiment says: %s; --device cpu computes on the processors", device,
                     why.text);
out:
    return st;
}

static void take_options(cli_ranks *r, const cli_args *args)
{
    *r = (cli_ranks){.options = {.ranks = args->ranks,
                                 .threads = args->threads,
                                 .bind = args->bind,
                                 .nodes = args->nodes,
                                 .node_rank = args->node_rank,
                                 .master = args->master,
                                 .join_timeout_s = args->join_timeout,
                                 .insecure = args->insecure,
                                 .silent = args->quiet || args->json,
                                 .end = &r->end}};
}

ls_status cli_ranks_bare(cli_ranks *r, const cli_args *args, ls_err *err)
{
    take_options(r, args);
    return ls_launch_detect(&r->start, &r->options, ls_launch_env, NULL, err);
}

ls_status cli_ranks_open(cli_ranks *r, const char *experiment, bool keep_ranks, const cli_args *args,
                         ls_err *err)
{
    ls_launch_options *o = &r->options;
    ls_status st = LS_OK;
    int known;

    take_options(r, args);
    /* Under mpirun or srun the number is known before the experiment, whose own may not even share its batch.
     */
    LS_TRY(ls_launch_detect(&r->start, o, ls_launch_env, NULL, err));
    known = r->start.kind == LS_START_RANK ? r->start.place.size : keep_ranks ? args->ranks : 1;
    LS_TRY(cli_load(&r->experiment, experiment, args, known, err));
    /* Before ranks are started, each of which would say the same. */
    if (!args->dry_run && !args->list_settings)
        LS_TRY(cli_device_check(args, ls_config_text(r->experiment.cfg, "device"), err));
    if (r->start.kind == LS_START_RANK) goto out;
    o->total = (int)ls_config_int(r->experiment.cfg, "ranks");
    LS_TRY(ls_launch_detect(&r->start, o, ls_launch_env, NULL, err));
    if (r->start.place.size != o->total)
        LS_TRY(cli_load(&r->experiment, experiment, args, r->start.place.size, err));
out:
    return st;
}

void cli_ranks_release(cli_ranks *r)
{
    ls_experiment_release(&r->experiment);
    *r = (cli_ranks){0};
}

int cli_ranks_run(const cli_ranks *r, const char *command, ls_rank_main rank_main, void *arg)
{
    ls_err err = {0};
    int code;

    if (ls_launch_run(&r->start, &r->options, rank_main, arg, &code, &err) != LS_OK)
        return cli_fail(command, &err);
    return code;
}

ls_train_options cli_train_options(const cli_args *args, const ls_place *place, ls_comm *comm)
{
    return (ls_train_options){.threads = place->threads,
                              .json = args->json,
                              .quiet = args->quiet,
                              .comm = comm,
                              .stop = ls_launch_stop_requests()};
}

int cli_fail_in_rank(const char *command, const ls_place *place, const ls_err *err)
{
    if (ls_place_is_watched(place) && (err->status == LS_LOST || err->status == LS_CANCELLED))
        return LS_EXIT_LOST; /* the launcher has said why */
    if (err->text[0] == '\0' && place->size > 1)
        return ls_place_is_watched(place) ? LS_EXIT_LOST : ls_launch_exit_code(err->status); /* another has */
    return cli_fail(command, err);
}
