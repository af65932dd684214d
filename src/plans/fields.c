/* fields.c: members of a plan's JSON, each with its type and its range. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/text.h"
#include "plans/read_internal.h"

#define NUMBER_MOST 1e30

ls_status lsi_item_refuse(lsi_item *it, const char *fmt, ...)
{
    char what[LS_ERR_TEXT_MAX / 2], place[32] = "";
    va_list ap;

    if (it->st != LS_OK) return it->st;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (it->at >= 0) snprintf(place, sizeof place, " %" PRId64, it->at);
    it->st = ls_fail(it->err, LS_DATA, "%s%s: %s; write the file anew with `lockstep plan ... --json`",
                     it->list, place, what);
    return it->st;
}

/* The member, or NULL after a refusal. */
static const json_t *member(lsi_item *it, const char *key)
{
    const json_t *v = json_object_get(it->o, key);

    if (it->st != LS_OK) return NULL;
    if (!json_is_object(it->o))
        lsi_item_refuse(it, "it is no object");
    else if (v == NULL)
        lsi_item_refuse(it, "it has no \"%s\"", key);
    return v;
}

static void refuse_type(lsi_item *it, const char *key, const json_t *v, const char *wanted)
{
    char text[LS_JSON_SHOWN];

    lsi_item_refuse(it, "\"%s\" is %s, must be %s", key, ls_json_show(v, text), wanted);
}

int64_t lsi_item_whole(lsi_item *it, const char *key, int64_t least, int64_t most)
{
    const json_t *v = member(it, key);
    const int64_t x = json_integer_value(v);

    if (v == NULL) return 0;
    if (!json_is_integer(v)) {
        refuse_type(it, key, v, "a whole number");
        return 0;
    }
    if (x >= least && x <= most) return x;
    lsi_item_refuse(it, "\"%s\" is %" PRId64 ", must be %" PRId64 " to %" PRId64, key, x, least, most);
    return 0;
}

double lsi_item_number(lsi_item *it, const char *key)
{
    const json_t *v = member(it, key);
    const double x = json_number_value(v);

    if (v == NULL) return 0;
    if (json_is_number(v) && x >= 0 && x <= NUMBER_MOST) return x;
    refuse_type(it, key, v, "a number that is not negative, up to 1e30");
    return 0;
}

bool lsi_item_flag(lsi_item *it, const char *key)
{
    const json_t *v = member(it, key);

    if (v != NULL && !json_is_boolean(v)) refuse_type(it, key, v, "true or false");
    return json_is_true(v);
}

/* Whether a terminal shows the text as one line and obeys nothing in it; `copy` is changed. */
static bool is_plain(const char *text, char *copy)
{
    ls_printable_in_place(copy);
    return strcmp(text, copy) == 0 && strpbrk(text, "\t\n") == NULL;
}

const char *lsi_item_text(lsi_item *it, const char *key)
{
    const json_t *v = member(it, key);
    const char *text = json_string_value(v);
    char *copy;

    if (v == NULL) return "";
    if (text == NULL) {
        refuse_type(it, key, v, "a text");
        return "";
    }
    copy = ls_arena_strdup(it->d->arena, text);
    if (copy == NULL) {
        it->st = ls_fail(it->err, LS_NOMEM, "no memory for a plan");
        return "";
    }
    if (is_plain(text, copy)) return copy;
    refuse_type(it, key, v, "a text of one line without control characters");
    return "";
}

const char *lsi_item_name(lsi_item *it, const char *key, const char *const *names, int n)
{
    const json_t *v = member(it, key);
    const char *text = json_string_value(v);
    ls_text wanted = {0};

    if (v == NULL) return "";
    for (int i = 0; text != NULL && i < n; i++)
        if (strcmp(text, names[i]) == 0) return names[i];
    for (int i = 0; i < n; i++)
        ls_text_add(&wanted, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i]);
    refuse_type(it, key, v, wanted.data != NULL ? wanted.data : "a known name");
    ls_text_release(&wanted);
    return "";
}

const json_t *lsi_item_list(lsi_item *it, const char *key)
{
    const json_t *v = member(it, key);

    if (v == NULL) return NULL;
    if (json_is_array(v) && json_array_size(v) <= INT32_MAX / 2) return v;
    refuse_type(it, key, v, "a list");
    return NULL;
}
