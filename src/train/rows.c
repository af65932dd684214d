/* rows.c: outputs of samples on their way from all ranks to rank 0. */
#include "train/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* What a rank hands over: a count, then `room` indices, labels and rows. */
static int64_t *indices_of(char *block)
{
    return (int64_t *)(void *)(block + sizeof(int64_t));
}

static int32_t *labels_of(const ls_rows *r, char *block)
{
    return (int32_t *)(void *)(indices_of(block) + r->room);
}

static float *values_of(const ls_rows *r, char *block)
{
    return (float *)(void *)(labels_of(r, block) + r->room);
}

static bool is_output(const char *fetch)
{
    return strncmp(fetch, LS_OUTPUT_PREFIX, strlen(LS_OUTPUT_PREFIX)) == 0;
}

static ls_status add(ls_rows *r, const ls_tensor *t, const char *name, ls_err *err)
{
    ls_rows_output *o = &r->outputs[r->n_outputs];

    if (r->only != NULL && strcmp(r->only, name) != 0) return LS_OK;
    if (r->n_outputs == LS_ROWS_OUTPUTS)
        return ls_fail(err, LS_INVALID, "the model has more than %d outputs; choose one: --output NAME",
                       LS_ROWS_OUTPUTS);
    snprintf(o->name, sizeof o->name, "%.63s", name);
    snprintf(o->fetch, sizeof o->fetch, "%.79s", t->name);
    o->width = ls_shape_count(t->shape) / t->shape.dim[0];
    r->width += o->width;
    r->n_outputs++;
    return LS_OK;
}

static ls_status fail_none(const ls_rows *r, const ls_plan *p, ls_err *err)
{
    ls_text list = {0};
    ls_status st;

    if (ls_plan_fetch(p, LS_SCORES) != NULL) ls_text_add(&list, " score");
    for (int i = 0; i < ls_plan_fetch_count(p); i++)
        if (is_output(ls_plan_fetch_at(p, i)->name))
            ls_text_add(&list, " %s", ls_plan_fetch_at(p, i)->name + strlen(LS_OUTPUT_PREFIX));
    if (list.length > 0)
        st = ls_fail(err, LS_INVALID, "the model has no output \"%s\"; it has:%s", r->only, list.data);
    else
        st = ls_fail(
            err, LS_INVALID,
            "the model declares no outputs per sample: its trial calls neither ls_scores nor ls_output");
    ls_text_release(&list);
    return st;
}

ls_status ls_rows_prepare(ls_rows *r, const ls_plan *p, ls_err *err)
{
    const ls_tensor *scores = ls_plan_fetch(p, LS_SCORES);
    ls_status st = LS_OK;

    if (scores == NULL && r->unlabelled)
        return ls_fail(err, LS_INVALID,
                       "the model's input \"label\" is not in the data set; only the outputs of classifiers "
                       "(ls_scores) can be had without labels");
    if (scores != NULL) LS_TRY(add(r, scores, "score", err));
    r->scores = r->n_outputs > 0;
    for (int i = 0; i < ls_plan_fetch_count(p); i++) {
        const ls_tensor *t = ls_plan_fetch_at(p, i);
        if (is_output(t->name)) LS_TRY(add(r, t, t->name + strlen(LS_OUTPUT_PREFIX), err));
    }
    if (r->n_outputs == 0) return fail_none(r, p, err);
    r->bytes = sizeof(int64_t) +
               (size_t)r->room * (sizeof(int64_t) + sizeof(int32_t) + sizeof(float) * (size_t)r->width);
    r->bytes = (r->bytes + 7) / 8 * 8;
    r->mine = ls_alloc(LS_MEM_DATA, r->bytes);
    if (r->mine == NULL)
        st = ls_fail(err, LS_NOMEM, "no memory for %lld rows of outputs", (long long)r->room);
out:
    return st;
}

ls_status ls_rows_take(ls_rows *r, const ls_plan *p, int64_t first, const int64_t *at, ls_err *err)
{
    const ls_tensor *labels = ls_plan_fetch(p, LS_SCORES_LABEL);
    int64_t n = 0, column = 0;
    ls_status st = LS_OK;

    for (int k = 0; k < r->n_outputs; k++) {
        const ls_tensor *t = ls_plan_fetch(p, r->outputs[k].fetch);
        const int64_t width = r->outputs[k].width;
        LS_BUG_IF(t == NULL || r->n + t->shape.dim[0] > r->room);
        n = t->shape.dim[0];
        for (int64_t i = 0; i < n; i++)
            LS_TRY(ls_tensor_read(t, sizeof(float) * (size_t)(i * width),
                                  values_of(r, r->mine) + (r->n + i) * r->width + column,
                                  sizeof(float) * (size_t)width, err));
        column += width;
    }
    for (int64_t i = 0; i < n; i++) indices_of(r->mine)[r->n + i] = at != NULL ? at[i] : first + i;
    if (r->scores && !r->unlabelled && labels != NULL)
        LS_TRY(ls_tensor_read(labels, 0, labels_of(r, r->mine) + r->n, sizeof(int32_t) * (size_t)n, err));
    r->n += n;
out:
    return st;
}

ls_status ls_rows_pass_on(ls_rows *r, ls_comm *c, ls_err *err)
{
    const int ranks = c != NULL ? ls_comm_size(c) : 1;
    ls_status st = LS_OK;

    memcpy(r->mine, &r->n, sizeof r->n);
    r->n = 0;
    if (r->all == NULL && ranks > 1) {
        r->all = ls_alloc(LS_MEM_DATA, r->bytes * (size_t)ranks);
        if (r->all == NULL) return ls_fail(err, LS_NOMEM, "no memory for the rows of %d ranks", ranks);
    }
    if (ranks > 1) LS_TRY(ls_comm_gather_all(c, r->mine, r->bytes, r->all, "gathering outputs", err));
    for (int k = 0; k < ranks && (c == NULL || ls_comm_rank(c) == 0); k++) {
        char *block = ranks > 1 ? r->all + (size_t)k * r->bytes : r->mine;
        int64_t n;
        memcpy(&n, block, sizeof n);
        if (n > 0)
            LS_TRY(r->sink(r->arg, n, indices_of(block), values_of(r, block),
                           r->scores && !r->unlabelled ? labels_of(r, block) : NULL, err));
    }
out:
    return st;
}

void ls_rows_release(ls_rows *r)
{
    ls_free(r->mine);
    ls_free(r->all);
    r->mine = r->all = NULL;
}
