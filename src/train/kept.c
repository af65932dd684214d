/* kept.c: copies of batches. */
#include "train/kept.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

static ls_status no_memory(ls_err *err)
{
    return ls_fail(err, LS_NOMEM, "no memory for the batches of an update");
}

/* One more place, empty. */
static ls_status grow(ls_kept *k, ls_err *err)
{
    if (!LS_GROW(LS_MEM_DATA, k->batches, k->cap + 1, k->room)) return no_memory(err);
    k->batches[k->cap] = ls_alloc(LS_MEM_DATA, sizeof **k->batches);
    if (k->batches[k->cap] == NULL) return no_memory(err);
    k->cap++;
    return LS_OK;
}

static void free_copies(ls_kept_batch *b)
{
    for (int i = 0; i < LS_SESSION_INPUTS; i++) {
        ls_free(b->copies[i]);
        b->copies[i] = NULL;
    }
    b->room = 0;
}

static ls_status make_room(ls_kept_batch *to, const ls_dataset *data, int n_fields, int64_t samples,
                           ls_err *err)
{
    if (samples <= to->room) return LS_OK;
    free_copies(to);
    for (int i = 0; i < n_fields; i++) {
        to->copies[i] = ls_alloc(LS_MEM_DATA, ls_dataset_field_bytes(data, i) * (size_t)samples);
        if (to->copies[i] == NULL) return no_memory(err);
    }
    to->room = samples;
    return LS_OK;
}

ls_status ls_kept_add(ls_kept *k, const ls_dataset *data, const ls_batch *b, int64_t samples, int64_t pending,
                      ls_err *err)
{
    const ls_field *fields;
    const int n_fields = ls_dataset_fields(data, &fields);
    ls_kept_batch *to;
    ls_status st = LS_OK;

    LS_BUG_IF(n_fields > LS_SESSION_INPUTS);
    if (k->n == k->cap) LS_TRY(grow(k, err));
    to = k->batches[k->n];
    LS_TRY(make_room(to, data, n_fields, samples, err));
    for (int i = 0; i < n_fields; i++)
        memcpy(to->copies[i], b->fields[i], ls_dataset_field_bytes(data, i) * (size_t)samples);
    to->b = *b;
    to->b.fields = to->copies;
    to->b.indices = NULL;
    to->pending = pending;
    k->n++;
out:
    return st;
}

void ls_kept_clear(ls_kept *k)
{
    k->n = 0;
}

void ls_kept_release(ls_kept *k)
{
    for (int i = 0; i < k->cap; i++) {
        free_copies(k->batches[i]);
        ls_free(k->batches[i]);
    }
    ls_free(k->batches);
    *k = (ls_kept){0};
}
