/* init.c: weights from elsewhere. */
#include "train/init.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "ckpt/ckpt.h"
#include "ckpt/weights.h"
#include "exec/pieces.h"
#include "runs/reader.h"
#include "train/team.h"

static const char remedy[] =
    "train.init_skip=PATTERN leaves variables at their initial values (fc.* for a head with other classes); "
    "train.init_strict=false loads what fits";

/* What the run keeps of it: the path does not depend on the working directory. */
static json_t *describe(const ls_weights *w, uint64_t hash, const ls_weights_outcome *o)
{
    char path[PATH_MAX], text[20];
    const bool full = realpath(ls_weights_path(w), path) != NULL;

    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_pack("{s:s, s:s, s:i, s:i}", "path", full ? path : ls_weights_path(w), "xxh3", text, "loaded",
                     o->loaded, "kept", o->skipped + o->missing + o->misfits);
}

/* Half a checkpoint is a damaged one. */
static bool has_tensors(const char *folder)
{
    char path[LS_PATH_MAX];

    return snprintf(path, sizeof path, "%s/model.safetensors", folder) < LS_PATH_MAX &&
           access(path, F_OK) == 0;
}

/* The checkpoint or file that a run, checkpoint or file means. */
static ls_status locate(const char *given, char path[LS_PATH_MAX], ls_err *err)
{
    char config[LS_PATH_MAX];
    struct stat info;

    if (stat(given, &info) != 0)
        return ls_fail(err, LS_INVALID, "%s: there is no such run, checkpoint or safetensors file", given);
    if (S_ISDIR(info.st_mode) && ls_run_is_one(given)) return ls_run_locate(given, false, config, path, err);
    if (snprintf(path, LS_PATH_MAX, "%s/manifest.json", given) < LS_PATH_MAX && S_ISDIR(info.st_mode) &&
        access(path, F_OK) != 0 && !has_tensors(given))
        return ls_fail(err, LS_INVALID, "%s: is neither a checkpoint nor a run", given);
    snprintf(path, LS_PATH_MAX, "%s", given);
    return LS_OK;
}

static ls_status check_settings(ls_config *cfg, bool given, ls_err *err)
{
    if (given) return LS_OK;
    if (ls_config_text(cfg, "train.init_skip")[0] == '\0' && ls_config_bool(cfg, "train.init_strict"))
        return LS_OK;
    return ls_fail(
        err, LS_INVALID,
        "train.init_skip and train.init_strict mean nothing without train.init=RUN|CHECKPOINT|FILE");
}

ls_status ls_init_weights(ls_session *s, json_t **note, ls_err *err)
{
    const char *path = ls_config_text(s->cfg, "train.init"),
               *skip = ls_config_text(s->cfg, "train.init_skip");
    const ls_weights_wish wish = {.skip = skip[0] != '\0' ? skip : NULL,
                                  .lenient = !ls_config_bool(s->cfg, "train.init_strict"),
                                  .remedy = remedy};
    ls_weights_outcome outcome = {0};
    char found[LS_PATH_MAX];
    ls_weights *w = NULL;
    uint64_t hash = 0;
    ls_status st = LS_OK;

    *note = NULL;
    st = check_settings(s->cfg, path[0] != '\0', err);
    if (st != LS_OK) return st;
    if (path[0] == '\0') return LS_OK;
    if (s->rank != 0) return ls_pieces_serve(s->state, ls_ckpt_assist, err);
    LS_TRY(locate(path, found, err));
    LS_TRY(ls_weights_open(&w, found, err));
    LS_TRY(ls_weights_load(w, s->state, &wish, &outcome, err));
    LS_TRY(ls_pieces_end(s->state, err));
    if (outcome.loaded == 0) {
        st = ls_fail(err, LS_INVALID, "%s: none of its tensors is one of the model's", path);
        goto out;
    }
    if (outcome.differences.length > 0)
        ls_log(LS_LOG_WARN, "train.init: %s: %s; variables that lack keep their initial values",
               ls_weights_path(w), outcome.differences.data);
    LS_TRY(ls_weights_hash(w, &hash, err));
    *note = describe(w, hash, &outcome);
    if (*note == NULL) st = ls_fail(err, LS_NOMEM, "train.init: no memory");
out:
    ls_weights_outcome_release(&outcome);
    ls_weights_close(w);
    return ls_fail_in(err, st, "train.init");
}

ls_status ls_init_to_evaluate(ls_session *s, const char *path, ls_err *err)
{
    const ls_weights_wish all = {0};
    ls_weights_outcome outcome = {0};
    ls_weights *w = NULL;
    ls_counters none = {0};
    ls_status st = LS_OK;

    if (s->rank == 0) {
        LS_TRY(ls_weights_open(&w, path, err));
        LS_TRY(ls_weights_load(w, s->state, &all, &outcome, err));
        LS_TRY(ls_pieces_end(s->state, err));
    } else {
        LS_TRY(ls_pieces_serve(s->state, ls_ckpt_assist, err));
    }
    LS_TRY(ls_team_share(s->comm, s, &none, err));
out:
    ls_weights_outcome_release(&outcome);
    ls_weights_close(w);
    return st;
}
