/* machine_fields.c: members of a machine's JSON, each with its type and its range. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/printable.h"
#include "predict/machine_internal.h"

ls_status lsi_member_refuse(lsi_member *m, const char *fmt, ...)
{
    char what[LS_ERR_TEXT_MAX / 2], place[64] = "";
    va_list ap;

    if (m->st != LS_OK) return m->st;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (m->list != NULL) snprintf(place, sizeof place, "%s %" PRId64 ": ", m->list, m->at);
    m->st = ls_fail(m->err, LS_INVALID, "%s: %s%s", m->path, place, what);
    return m->st;
}

void lsi_member_known(lsi_member *m, const char *const *names, int n)
{
    const char *key;
    json_t *value;

    if (m->st == LS_OK && !json_is_object(m->o)) lsi_member_refuse(m, "it is no object");
    if (m->st != LS_OK) return;
    json_object_foreach((json_t *)(uintptr_t)m->o, key, value)
    {
        char shown[LS_JSON_SHOWN];
        int i = 0;
        while (i < n && strcmp(key, names[i]) != 0) i++;
        if (i < n) continue;
        ls_printable(key, strlen(key), shown, sizeof shown);
        lsi_member_refuse(m, "it has a \"%s\", which a machine has not; docs/predict.md lists its fields",
                          shown);
        return;
    }
}

/* The member, or NULL: it is not there, which may have been refused. */
static const json_t *member(lsi_member *m, const char *key, bool wanted)
{
    const json_t *v = json_object_get(m->o, key);

    if (m->st != LS_OK) return NULL;
    if (!json_is_object(m->o))
        lsi_member_refuse(m, "it is no object");
    else if (v == NULL && wanted)
        lsi_member_refuse(m, "it has no \"%s\"", key);
    return v;
}

static void refuse_type(lsi_member *m, const char *key, const json_t *v, const char *wanted)
{
    char text[LS_JSON_SHOWN];

    lsi_member_refuse(m, "\"%s\" is %s, must be %s", key, ls_json_show(v, text), wanted);
}

double lsi_member_number(lsi_member *m, const char *key, bool wanted, double least, double most)
{
    const json_t *v = member(m, key, wanted);
    const double x = json_number_value(v);
    char range[64];

    if (v == NULL) return 0;
    if (json_is_number(v) && x >= least && x <= most) return x;
    snprintf(range, sizeof range, "a number from %g to %g", least, most);
    refuse_type(m, key, v, range);
    return 0;
}

int32_t lsi_member_whole(lsi_member *m, const char *key, bool wanted, int32_t least, int32_t most)
{
    const json_t *v = member(m, key, wanted);
    const int64_t x = json_integer_value(v);
    char range[64];

    if (v == NULL) return 0;
    if (json_is_integer(v) && x >= least && x <= most) return (int32_t)x;
    snprintf(range, sizeof range, "a whole number from %d to %d", (int)least, (int)most);
    refuse_type(m, key, v, range);
    return 0;
}

bool lsi_member_flag(lsi_member *m, const char *key, bool wanted)
{
    const json_t *v = member(m, key, wanted);

    if (v != NULL && !json_is_boolean(v)) refuse_type(m, key, v, "true or false");
    return json_is_true(v);
}

const char *lsi_member_text(lsi_member *m, const char *key, bool wanted)
{
    const json_t *v = member(m, key, wanted);
    const char *text = json_string_value(v);
    char *copy;

    if (v == NULL) return "";
    copy = text != NULL ? ls_arena_strdup(m->arena, text) : NULL;
    if (text != NULL && copy == NULL) {
        m->st = ls_fail(m->err, LS_NOMEM, "no memory for a machine");
        return "";
    }
    if (copy != NULL) ls_printable_in_place(copy);
    if (copy != NULL && strcmp(text, copy) == 0 && strpbrk(text, "\t\n") == NULL) return copy;
    refuse_type(m, key, v, "a text of one line without control characters");
    return "";
}

const json_t *lsi_member_list(lsi_member *m, const char *key, bool wanted, size_t most)
{
    const json_t *v = member(m, key, wanted);

    if (v == NULL) return NULL;
    if (json_is_array(v) && json_array_size(v) <= most) return v;
    if (json_is_array(v))
        lsi_member_refuse(m, "\"%s\" has %zu items, at most %zu are known", key, json_array_size(v), most);
    else
        refuse_type(m, key, v, "a list");
    return NULL;
}
