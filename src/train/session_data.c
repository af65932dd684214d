/* session_data.c: what a session's plans take of a data set, and how they get it. */
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "exec/results.h"
#include "graph/graph.h"
#include "train/session_internal.h"

bool lsi_session_is_own_input(const char *name)
{
    static const char *const own[] = {"rng",         "loss_scale",   "gradient.weight", "gradient.keep",
                                      "rank.weight", "rank.samples", "shard",           LS_CONTROL,
                                      LS_METRICS,    LS_SKIPS_KNOWN, LS_GUARD_BEFORE,   LS_GUARD_RANK};

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(name, own[i]) == 0) return true;
    if (strncmp(name, LS_RATE_AGAIN, sizeof LS_RATE_AGAIN - 1) == 0) name += sizeof LS_RATE_AGAIN - 1;
    return lsi_session_is_rate(name);
}

static const ls_field *find_field(const ls_field *fields, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0) return &fields[i];
    return NULL;
}

/* The shape of one sample of a batched input. */
static ls_shape sample_shape(ls_shape s)
{
    ls_shape r = {.rank = s.rank - 1};

    for (int i = 1; i < s.rank; i++) r.dim[i - 1] = s.dim[i];
    return r;
}

int ls_session_fields(const ls_session *s, ls_field fields[LS_SESSION_INPUTS])
{
    const ls_plan *p = ls_session_usual(s, 0)->plan;
    int n = 0;

    for (int i = 0; i < ls_plan_input_count(p) && n < LS_SESSION_INPUTS; i++) {
        const ls_tensor *t = ls_plan_input_at(p, i);
        if (!lsi_session_is_own_input(t->name))
            fields[n++] = (ls_field){t->name, t->dtype, sample_shape(t->shape)};
    }
    return n;
}

ls_status ls_needs_find(ls_needs *n, const ls_trial *trial, ls_config *cfg, ls_err *err)
{
    double lo, hi;
    ls_status st = LS_OK;

    *n = (ls_needs){0};
    LS_TRY(ls_trial_build_as(&n->step, trial, cfg, &(ls_build){.mode = LS_TRAIN}, err));
    if (ls_step_input_range(n->step, "label", &lo, &hi)) n->classes = (int64_t)hi;
    n->graph = ls_step_graph_take(n->step);
    for (int32_t i = 0; i < n->graph->n_values && n->n_fields < LS_SESSION_INPUTS; i++) {
        const ls_vinfo *v = n->graph->values[i];
        if (v->kind == LS_VALUE_INPUT && !lsi_session_is_own_input(v->name))
            n->fields[n->n_fields++] = (ls_field){v->name, v->dtype, sample_shape(v->shape)};
    }
out:
    return st;
}

void ls_needs_release(ls_needs *n)
{
    if (n->graph != NULL) ls_graph_destroy(n->graph);
    ls_step_destroy(n->step);
    *n = (ls_needs){0};
}

static void shape_text(ls_shape s, char *buf, size_t n)
{
    size_t at = 0;

    buf[0] = '\0';
    if (s.rank == 0) snprintf(buf, n, "one number");
    for (int i = 0; i < s.rank && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", i > 0 ? "x" : "", (long long)s.dim[i]);
}

ls_status ls_session_check_data(const ls_session *s, const ls_dataset *data, ls_err *err)
{
    const ls_plan *p = ls_session_usual(s, 0)->plan;
    const ls_field *fields;
    const int n = ls_dataset_fields(data, &fields);

    for (int i = 0; i < ls_plan_input_count(p); i++) {
        const ls_tensor *t = ls_plan_input_at(p, i);
        const ls_field *f = find_field(fields, n, t->name);
        char want[128], have[128];
        if (lsi_session_is_own_input(t->name)) continue;
        if (f == NULL && s->unlabelled && strcmp(t->name, "label") == 0) continue;
        if (f == NULL)
            return ls_fail(err, LS_INVALID,
                           "the model's input \"%s\" is not in the data set; data.kind names its format",
                           t->name);
        shape_text(sample_shape(t->shape), want, sizeof want);
        shape_text(f->shape, have, sizeof have);
        if (f->dtype != t->dtype || !ls_shape_equal(f->shape, sample_shape(t->shape)))
            return ls_fail(err, LS_INVALID, "the model's input \"%s\" is %s %s, the data set's is %s %s",
                           t->name, ls_dtype_name(t->dtype), want, ls_dtype_name(f->dtype), have);
    }
    return LS_OK;
}

static void feed_no_labels(const ls_batch_plan *p)
{
    static const char none[1024];
    const ls_tensor *label = ls_plan_input(p->plan, "label");

    for (size_t at = 0; label != NULL && at < label->bytes; at += sizeof none)
        ls_plan_write_input(p->plan, "label", at, none,
                            label->bytes - at < sizeof none ? label->bytes - at : sizeof none);
}

void ls_session_feed(const ls_batch_plan *p, const ls_field *fields, int n_fields, void *const *from)
{
    for (int i = 0; i < n_fields; i++) {
        const ls_tensor *t = ls_plan_input(p->plan, fields[i].name);
        if (t != NULL) ls_plan_feed(p->plan, fields[i].name, 0, from[i], t->bytes);
    }
    if (find_field(fields, n_fields, "label") == NULL) feed_no_labels(p);
}

static void *alloc_staging(void *dev, size_t bytes)
{
    void *p = NULL;

    return ls_staging_alloc(&p, dev, bytes, &(ls_err){0}) == LS_OK ? p : NULL;
}

static void free_staging(void *dev, void *p)
{
    ls_staging_free(dev, p);
}

ls_loader_memory ls_session_staging(const ls_session *s)
{
    if (s->dev->backend->queues == NULL) return (ls_loader_memory){0};
    return (ls_loader_memory){alloc_staging, free_staging, s->dev};
}
