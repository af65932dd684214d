/* open.c: plans in files: which of a file's JSON values has them, and which of them is wanted. */
#include <string.h>

#include "base/alloc.h"
#include "base/whole.h"
#include "plans/plans.h"
#include "plans/read_internal.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)

static bool has_plans(const json_t *o)
{
    const char *event = json_string_value(json_object_get(o, "event"));

    return event != NULL && (strcmp(event, "document") == 0 || strcmp(event, "bench-export") == 0);
}

/* The JSON value of the text that has plans, of which there must be one; *o is the caller's, also after a
 * failure.  Others, before it and after it, are events of another kind. */
static ls_status find_plans(const char *text, size_t length, const char *path, json_t **o, ls_err *err)
{
    size_t at = 0;

    for (*o = NULL; at < length;) {
        json_error_t why;
        json_t *value;
        if (strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0') {
            at++;
            continue;
        }
        value = json_loadb(text + at, length - at, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &why);
        if (value == NULL)
            return ls_fail(err, LS_DATA, "%s: byte %zu: %s; a plan is what `lockstep plan ... --json` prints",
                           path, at + (size_t)(why.position > 0 ? why.position : 0), why.text);
        if (has_plans(value) && *o != NULL) {
            json_decref(value);
            return ls_fail(err, LS_DATA,
                           "%s: byte %zu: a second document begins, and which of them is meant nobody knows; "
                           "leave one, as `lockstep plan ... --json` prints it",
                           path, at);
        }
        at += (size_t)why.position;
        if (has_plans(value))
            *o = value;
        else
            json_decref(value);
    }
    if (*o != NULL) return LS_OK;
    return ls_fail(err, LS_DATA,
                   "%s: no plan is in it; it should be what `lockstep plan ... --json` prints, or a file of "
                   "`lockstep bench --export`",
                   path);
}

/* Buckets are numbered through all plans of a step, and each is some collective's. */
static ls_status check_buckets(ls_document *d, const json_t *plans, ls_err *err)
{
    size_t most = 0;

    for (size_t i = 0; i < json_array_size(plans); i++)
        most += json_array_size(json_object_get(json_array_get(plans, i), "collectives"));
    for (int32_t i = 0; i < d->n_collectives; i++) {
        lsi_item it = {d, NULL, "collective", i, err, LS_OK};
        if (d->collectives[i].bucket >= 0 && (size_t)d->collectives[i].bucket >= most)
            return lsi_item_refuse(&it, "\"bucket\" is %d, and the plans have %zu collectives",
                                   (int)d->collectives[i].bucket, most);
    }
    return LS_OK;
}

ls_status ls_document_parse(ls_document *d, const char *text, size_t length, const char *path, int plan,
                            int *n_plans, ls_err *err)
{
    const json_t *format, *plans;
    json_t *o = NULL;
    ls_status st = LS_OK;

    *d = (ls_document){0};
    *n_plans = 0;
    LS_TRY(find_plans(text, length, path, &o, err));
    format = json_object_get(o, strcmp(json_string_value(json_object_get(o, "event")), "document") == 0
                                    ? "format"
                                    : "plan_format");
    if (!json_is_integer(format) || json_integer_value(format) != LS_PLANS_FORMAT) {
        st = ls_fail(err, LS_DATA, "%s: its plan has format %lld, this version reads %d; write it anew", path,
                     (long long)json_integer_value(format), LS_PLANS_FORMAT);
        goto out;
    }
    plans = json_object_get(o, "plans");
    *n_plans = (int)json_array_size(plans);
    if (plan >= *n_plans) {
        st = ls_fail(err, LS_DATA, "%s: it has no plan%s; write it anew with `lockstep plan ... --json`",
                     path, *n_plans > 0 ? " of this number" : "");
        goto out;
    }
    st = ls_document_read(d, json_array_get(plans, (size_t)plan), err);
    if (st == LS_OK) st = check_buckets(d, plans, err);
    if (st != LS_OK && *n_plans > 1) ls_fail_in(err, st, "%s: plan %d of %d", path, plan + 1, *n_plans);
    if (st != LS_OK && *n_plans == 1) ls_fail_in(err, st, "%s", path);
out:
    json_decref(o);
    return st;
}

ls_status ls_document_open(ls_document *d, const char *path, int plan, int *n_plans, ls_err *err)
{
    char *text = NULL;
    size_t length;
    ls_status st = LS_OK;

    *d = (ls_document){0};
    *n_plans = 0;
    LS_TRY(ls_whole_plain(&text, &length, path, FILE_MAX_BYTES, err));
    LS_TRY(ls_document_parse(d, text, length, path, plan, n_plans, err));
out:
    ls_free(text);
    return st;
}
