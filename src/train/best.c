/* best.c: which metric, and which way. */
#include "train/best.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "config/settings.h"
#include "graph/graph.h"
#include "lockstep/nn.h"

enum { BEST_AUTO, BEST_MAX, BEST_MIN }; /* values of train.best_mode */

/* Whether a word of the name (up to anything but letters and digits) begins with one of `starts`. */
static bool has_word(const char *name, const char *const *starts)
{
    for (const char *at = name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) || (at > name && isalnum((unsigned char)at[-1]))) continue;
        for (int i = 0; starts[i] != NULL; i++)
            if (strncasecmp(at, starts[i], strlen(starts[i])) == 0) return true;
    }
    return false;
}

bool ls_best_is_larger(const char *name)
{
    static const char *const errors[] = {"loss", "err", "dist", "mse", "mae", "rmse", "fid", "nll", NULL};
    static const char *const successes[] = {"acc",     "top",  "auc",  "f1",   "prec", "recall",
                                            "iou",     "miou", "dice", "psnr", "ssim", "score",
                                            "correct", "r2",   "map",  NULL};

    return !has_word(name, errors) && has_word(name, successes);
}

bool ls_best_better(const ls_best *b, double value, double than)
{
    return b->larger ? value > than : value < than;
}

/* The names of what an evaluation step of the model reports, each with `prefix`; *found: `name` is among
 * them. */
static ls_status list_metrics(const ls_trial *trial, ls_config *cfg, const char *name, ls_text *out,
                              bool *found, ls_err *err)
{
    const ls_build how = {.mode = LS_EVAL};
    const ls_distance_info *infos;
    ls_step *step = NULL;
    ls_graph *g = NULL;
    ls_status st = LS_OK;

    *found = false;
    LS_TRY(ls_trial_build_as(&step, trial, cfg, &how, err));
    g = ls_step_graph_take(step);
    for (int32_t i = 0; i < g->n_values; i++) {
        const ls_vinfo *v = ls_graph_value(g, i);
        if (!v->fetch || v->dtype != LS_F32 || v->shape.rank != 0) continue;
        ls_text_add(out, "%sval/%s", out->length > 0 ? ", " : "", v->name);
        *found = *found || strcmp(v->name, name) == 0;
    }
    for (int i = 0, n = ls_step_distances(step, &infos); i < n; i++) {
        ls_text_add(out, "%sval/%s", out->length > 0 ? ", " : "", infos[i].name);
        *found = *found || strcmp(infos[i].name, name) == 0;
    }
out:
    ls_graph_destroy(g);
    ls_step_destroy(step);
    return st;
}

/* What would go by the metric, or NULL. */
static const char *user_of(ls_config *cfg)
{
    if (ls_config_int(cfg, "train.early_stop") > 0) return "train.early_stop";
    return strcmp(ls_config_choice(cfg, "lr.schedule"), "plateau") == 0 ? "lr.schedule=plateau" : NULL;
}

static bool is_default(const char *metric)
{
    for (const ls_setting *s = ls_train_settings; s->key != NULL; s++)
        if (strcmp(s->key, "train.best_metric") == 0) return strcmp(s->text, metric) == 0;
    return false;
}

ls_status ls_best_open(ls_best *b, const ls_trial *trial, ls_config *cfg, ls_err *err)
{
    const char *metric = ls_config_text(cfg, "train.best_metric"), *slash = strchr(metric, '/');
    const char *user = user_of(cfg);
    const int64_t mode = ls_config_int(cfg, "train.best_mode");
    ls_text names = {0};
    bool found;
    ls_status st = LS_OK;

    b->name = slash != NULL ? slash + 1 : metric;
    b->larger = mode == BEST_AUTO ? ls_best_is_larger(b->name) : mode == BEST_MAX;
    if (user == NULL && is_default(metric)) return LS_OK;
    if (user != NULL && ls_config_period(cfg, "train.validate_every").unit == LS_PERIOD_NONE)
        return ls_fail(err, LS_INVALID,
                       "%s goes by validations, and train.validate_every=none has none; set it to 1ep, say",
                       user);
    LS_TRY(list_metrics(trial, cfg, b->name, &names, &found, err));
    if (slash != NULL && strncmp(metric, "val/", 4) != 0) found = false;
    if (!found)
        st = ls_fail(err, LS_INVALID, "train.best_metric=%s%s%s: the validation of model \"%s\" has %s",
                     metric, user != NULL ? ", by which goes " : "", user != NULL ? user : "", trial->name,
                     names.data != NULL ? names.data : "no metrics");
out:
    ls_text_release(&names);
    return st;
}
