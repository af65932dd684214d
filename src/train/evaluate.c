/* evaluate.c: data sets of an experiment, and evaluation. */
#include "train/evaluate.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "data/loader.h"
#include "exec/results.h"
#include "train/breaks.h"
#include "train/shards.h"
#include "train/team.h"

/* NULL for the empty text. */
static const char *text_or_null(ls_config *cfg, const char *key)
{
    const char *t = ls_config_text(cfg, key);

    return t != NULL && t[0] != '\0' ? t : NULL;
}

enum { SYNTHETIC_TRAIN = 8192, SYNTHETIC_TEST = 2048 };

/* What is odd about a set and no error. */
static void remark(const ls_dataset *d, int64_t outputs, bool fixed)
{
    const char *const *names, *file;
    const int64_t n = ls_dataset_classes(d, &names), ignored = ls_dataset_ignored(d, &file);
    char more[64] = "";

    if (ignored > 1) snprintf(more, sizeof more, " and %lld other files", (long long)ignored - 1);
    if (ignored > 0)
        ls_log(LS_LOG_WARN, "%s%s %s no JPEG or PNG and %s left out", file, more, ignored > 1 ? "are" : "is",
               ignored > 1 ? "are" : "is");
    if (n > 0 && n < outputs && fixed)
        ls_log(LS_LOG_WARN, "the model tells %lld classes apart, the data set has %lld (%s ... %s)",
               (long long)outputs, (long long)n, names[0], names[n - 1]);
    else if (n > 0 && n < outputs)
        ls_log(
            LS_LOG_WARN,
            "the model tells %lld classes apart, the data set has %lld (%s ... %s): model.classes=%lld fits",
            (long long)outputs, (long long)n, names[0], names[n - 1], (long long)n);
}

bool ls_train_has_val(ls_config *cfg)
{
    return ls_config_real(cfg, "data.val_fraction") > 0 || text_or_null(cfg, "data.val_images") != NULL ||
           text_or_null(cfg, "data.val_range") != NULL;
}

/* One way to get validation samples is enough, and none may be trained with. */
static ls_status check_val(const ls_experiment *x, ls_err *err)
{
    ls_config *cfg = x->cfg;
    const bool files = text_or_null(cfg, "data.val_images") != NULL,
               range = text_or_null(cfg, "data.val_range") != NULL;
    int64_t first, end, train_first, train_end;

    if (ls_config_real(cfg, "data.val_fraction") > 0 && (files || range))
        return ls_fail(err, LS_INVALID,
                       "data.val_fraction holds out training samples for validation, and %s names others; "
                       "set one of the two",
                       files ? "data.val_images" : "data.val_range");
    if (!files && text_or_null(cfg, "data.val_labels") != NULL)
        return ls_fail(err, LS_INVALID, "data.val_labels without data.val_images");
    if (files || !range) return LS_OK;
    if (ls_config_real(cfg, "data.split") > 0)
        return ls_fail(err, LS_INVALID,
                       "data.val_range and data.split would cut the same file; use data.val_fraction with "
                       "data.split");
    if (ls_experiment_range(x, "data.val_range", &first, &end) &&
        ls_experiment_range(x, "data.train_range", &train_first, &train_end) &&
        (end <= train_first || train_end <= first))
        return LS_OK;
    return ls_fail(
        err, LS_INVALID,
        "data.val_range=%s would be trained with as well: set a data.train_range that leaves it out "
        "(or data.val_images, where it is of another file)",
        ls_config_text(cfg, "data.val_range"));
}

/* The names of the settings that say where the samples of a split are. */
typedef struct split_keys {
    const char *images, *labels, *range, *usual;
} split_keys;

static split_keys keys_of(ls_config *cfg, ls_split split)
{
    static const split_keys keys[] = {
        [LS_SPLIT_TRAIN] = {"data.train_images", "data.train_labels", "data.train_range", "train"},
        [LS_SPLIT_TEST] = {"data.test_images", "data.test_labels", "data.test_range", "test"},
        [LS_SPLIT_VAL] = {"data.val_images", "data.val_labels", "data.val_range", "val"},
    };
    split_keys k = keys[split];

    if (split != LS_SPLIT_VAL || text_or_null(cfg, "data.val_images") != NULL) return k;
    k = keys[LS_SPLIT_TRAIN]; /* held out of the training samples, or another range of their file */
    if (text_or_null(cfg, "data.val_range") != NULL) k.range = "data.val_range";
    return k;
}

ls_status ls_train_data(const ls_experiment *x, const ls_needs *needs, ls_split split, ls_dataset **out,
                        ls_err *err)
{
    ls_config *cfg = x->cfg;
    const bool test = split == LS_SPLIT_TEST,
               apart = split == LS_SPLIT_VAL && text_or_null(cfg, "data.val_images") != NULL;
    const split_keys keys = keys_of(cfg, split);
    const char *images = text_or_null(cfg, keys.images);
    ls_data_source src = {.kind = ls_config_choice(cfg, "data.kind"),
                          .path = text_or_null(cfg, "data.path"),
                          .images = images != NULL ? images : keys.usual,
                          .labels = text_or_null(cfg, keys.labels),
                          .split = apart ? 0 : ls_config_real(cfg, "data.split"),
                          .split_seed = (uint64_t)ls_config_int(cfg, "data.split_seed"),
                          .rest = test,
                          .hold = test || apart ? 0 : ls_config_real(cfg, "data.val_fraction"),
                          .held = split == LS_SPLIT_VAL,
                          .field = text_or_null(cfg, "data.field"),
                          .points = ls_config_int(cfg, "data.points"),
                          .box = text_or_null(cfg, "data.box"),
                          .normalise = ls_config_choice(cfg, "data.normalise"),
                          .layout = ls_config_choice(cfg, "data.layout"),
                          .channels = ls_config_int(cfg, "data.channels"),
                          .transform = {.resize = ls_config_int(cfg, "data.resize"),
                                        .pad = ls_config_int(cfg, "data.pad"),
                                        .crop = ls_config_int(cfg, "data.crop"),
                                        .flip = ls_config_bool(cfg, "data.flip")},
                          .n_fields = needs->n_fields,
                          .fields = needs->fields,
                          .classes = needs->classes,
                          .seed = (uint64_t)ls_config_int(cfg, "seed"),
                          .count = SYNTHETIC_TRAIN + SYNTHETIC_TEST,
                          .of_experiment = true,
                          .labels_optional = needs->labels_optional,
                          .fixed_classes = ls_config_find(cfg, "model.classes") < 0};

    *out = NULL;
    const ls_status fine = check_val(x, err);
    if (fine != LS_OK) return fine;
    if (!ls_experiment_range(x, keys.range, &src.first, &src.end) && strcmp(src.kind, "synthetic") == 0) {
        src.first = test ? SYNTHETIC_TRAIN : 0;
        src.end = test ? SYNTHETIC_TRAIN + SYNTHETIC_TEST : SYNTHETIC_TRAIN;
    }
    const ls_status st = ls_dataset_open(out, &src, err);
    if (st == LS_OK) remark(*out, split != LS_SPLIT_TRAIN ? 0 : src.classes, src.fixed_classes);
    return st;
}

ls_status ls_train_loader(const ls_session *s, const ls_update *u, const ls_dataset *data, int64_t first,
                          bool full_only, ls_loader **out, ls_err *err)
{
    ls_config *cfg = s->cfg;
    const int64_t per_shard = u->shards > 0 ? (u->samples + u->shards - 1) / u->shards : 0;
    const int64_t most = (u->shards + s->ranks - 1) / s->ranks; /* shards of a rank */
    const ls_loader_memory staging = ls_session_staging(s);
    const ls_loader_options options = {
        .batch = u->shards > 0 ? per_shard * most : ls_config_int(cfg, "batch.per_rank"),
        .shards = u->shards,
        .n_workers = (int)ls_config_int(cfg, "data.workers"),
        .depth = (int)ls_config_int(cfg, "data.prefetch"),
        .held = staging.alloc != NULL ? 1 : 0, /* a step may be on its way while the next is fed */
        .memory = staging,
        .shuffle = true,
        .augment = true,
        .seed = (uint64_t)ls_config_int(cfg, "seed"),
        .rank = s->rank,
        .n_ranks = s->ranks,
        .global = u->global,
        .first = first,
        .drop_last = full_only,
        .on_error = (ls_on_error)ls_config_int(cfg, "data.on_error"),
        .max_skipped = ls_config_int(cfg, "data.max_skipped"),
    };

    return ls_loader_create(out, data, &options, err);
}

static bool is_metric(const ls_tensor *t)
{
    return t->dtype == LS_F32 && t->shape.rank == 0 && strcmp(t->name, LS_CONTROL) != 0;
}

void ls_declare_metrics(const ls_plan *p, ls_metric_sums *sums)
{
    for (int i = 0; i < ls_plan_fetch_count(p); i++) {
        const ls_tensor *t = ls_plan_fetch_at(p, i);
        if (is_metric(t)) ls_metric_add(sums, t->name, 0, 0);
    }
}

ls_status ls_collect_metrics(ls_plan *p, int64_t n, ls_metric_sums *sums, ls_err *err)
{
    return ls_collect_results(p, ls_plan_runs(p), n, sums, err);
}

ls_status ls_collect_results(ls_plan *p, uint64_t run, int64_t n, ls_metric_sums *sums, ls_err *err)
{
    bool any = false;
    ls_status st = LS_OK;

    for (int i = 0; i < ls_plan_fetch_count(p); i++) {
        const ls_tensor *t = ls_plan_fetch_at(p, i);
        float x = 0;
        if (!is_metric(t)) continue;
        LS_TRY(ls_plan_result(p, t, run, &x, sizeof x, err));
        ls_metric_add(sums, t->name, (double)x, n);
        any = true;
    }
    if (!any) LS_TRY(ls_plan_join(p, err)); /* the caller takes the run for over */
    sums->samples += n;
out:
    return st;
}

/* A rank that got no samples still takes part in sums over ranks. */
static ls_status run_none(ls_session *s, ls_gather *gather, ls_metric_sums *sums, ls_err *err)
{
    ls_batch_plan *p;
    ls_status st = ls_session_plan(s, LS_EVAL, 0, 1, &p, err);

    if (st == LS_OK) ls_declare_metrics(p->plan, sums);
    return st == LS_OK ? ls_gather_prepare(gather, p, err) : st;
}

/* A rank that has no samples left still has a piece of the weights that the others need. */
static ls_status assist(ls_session *s, ls_err *err)
{
    ls_batch_plan *p;
    ls_status st = LS_OK;

    if (s->place.sharding != LS_SHARD_WEIGHTS) return LS_OK;
    LS_TRY(ls_session_plan(s, LS_EVAL, 0, 1, &p, err));
    LS_TRY(ls_plan_run(p->plan, err));
out:
    return st;
}

/* This rank's samples. */
static ls_status run_all(ls_session *s, const ls_dataset *data, ls_gather *gather, ls_metric_sums *sums,
                         ls_err *err)
{
    const ls_loader_options options = {.batch = ls_config_int(s->cfg, "batch.per_rank"),
                                       .n_workers = (int)ls_config_int(s->cfg, "data.workers"),
                                       .on_error = (ls_on_error)ls_config_int(s->cfg, "data.on_error"),
                                       .max_skipped = ls_config_int(s->cfg, "data.max_skipped"),
                                       .memory = ls_session_staging(s),
                                       .rank = s->rank,
                                       .n_ranks = s->ranks};
    const uint64_t seed = (uint64_t)ls_config_int(s->cfg, "seed");
    const ls_field *fields;
    const int n_fields = ls_dataset_fields(data, &fields);
    ls_breaks breaks = ls_breaks_begin(s);
    ls_loader *loader = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_loader_create(&loader, data, &options, err));
    if (gather->rows !=
        NULL) { /* all ranks hand on rows from the first batch on, also those that have none */
        ls_batch_plan *one;
        gather->rows->room = options.batch;
        LS_TRY(ls_session_plan(s, LS_EVAL, 0, 1, &one, err));
        LS_TRY(ls_gather_prepare(gather, one, err));
    }
    for (int64_t k = ls_loader_batches_per_epoch(loader); k > 0; k--) {
        ls_batch_plan *p;
        ls_batch b;
        LS_TRY(ls_loader_next(loader, &b, err));
        if (b.n == 0) LS_TRY(assist(s, err)); /* the others have the few that are left */
        if (b.n > 0) {
            LS_TRY(ls_session_plan(s, LS_EVAL, 0, b.n, &p, err));
            ls_session_feed(p, fields, n_fields, b.fields);
            ls_step_write_rng(p->plan, seed, LS_EVAL_STEP, (uint32_t)b.position);
            LS_TRY(ls_plan_run(p->plan, err));
            LS_TRY(ls_collect_metrics(p->plan, b.n, sums, err));
            LS_TRY(ls_gather_take_at(gather, p, b.indices, err)); /* not shuffled: their places */
        }
        LS_TRY(ls_gather_pass_on(gather, s->comm, err));
        LS_TRY(ls_breaks_after(&breaks, k - 1, err));
    }
    if (sums->samples == 0) LS_TRY(run_none(s, gather, sums, err));
    LS_TRY(ls_team_sum(s->comm, sums, NULL, err));
out:
    ls_loader_destroy(loader);
    return st;
}

ls_status ls_evaluate(ls_session *s, const ls_dataset *data, ls_gather *gather, ls_metric_sums *sums,
                      ls_err *err)
{
    ls_gather own = {.samples = ls_dataset_count(data)}, *g = gather != NULL ? gather : &own;
    ls_status st = LS_OK;

    *sums = (ls_metric_sums){0};
    LS_TRY(s->shards != NULL ? ls_shards_evaluate(s, data, g, sums, err) : run_all(s, data, g, sums, err));
    LS_TRY(ls_gather_finish(g, s->comm, sums, err));
out:
    ls_gather_release(&own);
    return st;
}
