/* network_fields.c: members of a network's file, each with its type and its range. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/printable.h"
#include "predict/network_internal.h"

ls_status lsi_part_refuse(lsi_part *p, const char *key, const char *fmt, ...)
{
    char what[LS_ERR_TEXT_MAX / 2];
    va_list ap;

    if (*p->st != LS_OK) return *p->st;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    *p->st = ls_fail(p->err, LS_INVALID, "%s: %s%s: %s", p->path, p->place, key, what);
    return *p->st;
}

void lsi_part_known(lsi_part *p, const char *const *known, size_t n_known)
{
    const char *key, *nearest;
    char shown[LS_JSON_SHOWN];
    json_t *value;

    if (p->o == NULL) return;
    json_object_foreach((json_t *)p->o, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < n_known; i++) is_known = is_known || strcmp(known[i], key) == 0;
        if (is_known) continue;
        nearest = ls_text_nearest(key, known, n_known);
        ls_printable(key, strlen(key), shown, sizeof shown);
        lsi_part_refuse(p, shown, "unknown field%s%s%s; docs/predict.md lists all",
                        nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                        nearest != NULL ? "\"?" : "");
        return;
    }
}

/* The member, or NULL where it is not there, and after a refusal. */
static const json_t *member(lsi_part *p, const char *key, bool must)
{
    const json_t *v = p->o != NULL ? json_object_get(p->o, key) : NULL;

    if (*p->st != LS_OK) return NULL;
    if (v == NULL && must) lsi_part_refuse(p, key, "missing; docs/predict.md says what it must be");
    return v;
}

double lsi_part_number(lsi_part *p, const char *key, bool must, double least, double most)
{
    const json_t *v = member(p, key, must);
    const double x = json_number_value(v);
    char shown[LS_JSON_SHOWN];

    if (v == NULL) return 0;
    if (json_is_number(v) && x >= least && x <= most) return x;
    lsi_part_refuse(p, key, "is %s, must be a number from %g to %g", ls_json_show(v, shown), least, most);
    return 0;
}

int32_t lsi_part_whole(lsi_part *p, const char *key, bool must, int32_t least, int32_t most)
{
    const json_t *v = member(p, key, must);
    const json_int_t x = json_integer_value(v);
    char shown[LS_JSON_SHOWN];

    if (v == NULL) return 0;
    if (json_is_integer(v) && x >= least && x <= most) return (int32_t)x;
    lsi_part_refuse(p, key, "is %s, must be a whole number from %d to %d", ls_json_show(v, shown), (int)least,
                    (int)most);
    return 0;
}

const char *lsi_part_text(lsi_part *p, const char *key, bool must)
{
    const json_t *v = member(p, key, must);
    const char *text = json_string_value(v);
    char *copy, shown[LS_JSON_SHOWN];

    if (v == NULL) return "";
    copy = text != NULL ? ls_arena_strdup(p->n->arena, text) : NULL;
    if (text != NULL && copy == NULL) {
        *p->st = ls_fail(p->err, LS_NOMEM, "no memory for a network");
        return "";
    }
    if (copy != NULL) {
        ls_printable_in_place(copy);
        if (strlen(copy) == json_string_length(v) && strcmp(copy, text) == 0 && strpbrk(text, "\t\n") == NULL)
            return copy;
    }
    lsi_part_refuse(p, key, "is %s, must be a text of one line", ls_json_show(v, shown));
    return "";
}

lsi_part lsi_part_object(lsi_part *p, const char *key)
{
    const json_t *v = member(p, key, true);
    lsi_part out = *p;
    char shown[LS_JSON_SHOWN];

    out.o = json_is_object(v) ? v : NULL;
    if (v != NULL && out.o == NULL)
        lsi_part_refuse(p, key, "is %s, must be an object", ls_json_show(v, shown));
    snprintf(out.place, sizeof out.place, "%.40s%.20s.", p->place, key);
    return out;
}

const json_t *lsi_part_list(lsi_part *p, const char *key, size_t least, size_t most)
{
    const json_t *v = member(p, key, true);
    char shown[LS_JSON_SHOWN];

    if (v == NULL) return NULL;
    if (!json_is_array(v)) {
        lsi_part_refuse(p, key, "is %s, must be a list", ls_json_show(v, shown));
        return NULL;
    }
    if (json_array_size(v) >= least && json_array_size(v) <= most) return v;
    lsi_part_refuse(p, key, "has %zu entries, must have %zu to %zu", json_array_size(v), least, most);
    return NULL;
}

lsi_part lsi_part_item(lsi_part *p, const char *key, const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);
    lsi_part out = *p;
    char name[32], shown[LS_JSON_SHOWN];

    snprintf(name, sizeof name, "%.16s[%zu]", key, i);
    out.o = json_is_object(v) ? v : NULL;
    if (out.o == NULL) lsi_part_refuse(p, name, "is %s, must be an object", ls_json_show(v, shown));
    snprintf(out.place, sizeof out.place, "%.28s%s.", p->place, name);
    return out;
}

void *lsi_part_room(lsi_part *p, size_t n, size_t item_bytes)
{
    void *items = *p->st == LS_OK ? ls_arena_alloc(p->n->arena, (n + 1) * item_bytes) : NULL;

    if (items == NULL && *p->st == LS_OK) *p->st = ls_fail(p->err, LS_NOMEM, "no memory for a network");
    return items;
}
