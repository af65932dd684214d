/* references.c: ${a.b}, ${env:VAR} and ${env:VAR:-otherwise} inside values.
 *
 * Every entry is resolved once and remembers it, so that references to references cost no more than
 * their number; what comes from a variable is taken as it is and not searched for references again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

typedef struct expansion {
    const lsi_entries *all;
    const ls_config *cfg;
    lsi_entry *entry;
    char text[LSI_VALUE_MAX];
    size_t length;
    ls_err *err;
} expansion;

static ls_status resolve(const lsi_entries *all, lsi_entry *e, const ls_config *cfg, int depth, ls_err *err);

static ls_status add(expansion *x, const char *text, size_t n)
{
    if (n >= sizeof x->text - x->length)
        return lsi_fail_at(x->err, &x->entry->value_at, "%s: longer than %d bytes with its references",
                           x->entry->written, LSI_VALUE_MAX - 1);
    memcpy(x->text + x->length, text, n);
    x->length += n;
    return LS_OK;
}

/* `name`: what follows "env:". */
static ls_status add_variable(expansion *x, char *name)
{
    char *otherwise = strstr(name, ":-");
    const char *value;

    if (otherwise != NULL) *otherwise = '\0';
    value = getenv(name);
    if (value == NULL && otherwise != NULL) value = otherwise + 2;
    if (value == NULL)
        return lsi_fail_at(x->err, &x->entry->value_at, "%s: the environment variable %.200s is not set",
                           x->entry->written, name);
    if (!lsi_is_printable(value, strlen(value)))
        return lsi_fail_at(x->err, &x->entry->value_at,
                           "%s: the environment variable %.200s does not hold plain UTF-8 text",
                           x->entry->written, name);
    return add(x, value, strlen(value));
}

static ls_status add_setting(expansion *x, const char *key, int depth)
{
    lsi_entry *other = lsi_find(x->all, key);
    char buf[LS_SETTING_SHOW_MAX];
    const char *value;
    ls_setting s;
    int i = x->cfg != NULL ? ls_config_find(x->cfg, key) : -1;
    ls_status st = LS_OK;

    if (other != NULL && other->kind == LSI_VALUE) {
        LS_TRY(resolve(x->all, other, x->cfg, depth + 1, x->err));
        value = other->value;
    } else if (i >= 0) {
        s = ls_config_at(x->cfg, i);
        value = ls_setting_show(&s, buf);
    } else {
        st = lsi_fail_at(x->err, &x->entry->value_at, "%s: refers to \"%.200s\", which is not set",
                         x->entry->written, key);
        goto out;
    }
    LS_TRY(add(x, value, strlen(value)));
out:
    return st;
}

/* The reference at `at` ("${..."); *end is where the text goes on. */
static ls_status add_reference(expansion *x, const char *at, int depth, const char **end)
{
    const char *close = strchr(at, '}');
    char name[LSI_VALUE_MAX];

    if (close == NULL)
        return lsi_fail_at(x->err, &x->entry->value_at, "%s: \"${\" without \"}\"", x->entry->written);
    snprintf(name, sizeof name, "%.*s", (int)(close - at - 2), at + 2);
    *end = close + 1;
    if (strncmp(name, "env:", 4) == 0) return add_variable(x, name + 4);
    return add_setting(x, name, depth);
}

static ls_status expand(expansion *x, int depth)
{
    const char *at = x->entry->value;
    ls_status st = LS_OK;

    while (*at != '\0') {
        size_t plain = strcspn(at, "$");
        LS_TRY(add(x, at, plain));
        at += plain;
        if (strncmp(at, "${", 2) == 0) {
            LS_TRY(add_reference(x, at, depth, &at));
        } else if (strncmp(at, "$${", 3) == 0) {
            LS_TRY(add(x, "${", 2));
            at += 3;
        } else if (*at == '$') {
            LS_TRY(add(x, at++, 1));
        }
    }
    x->text[x->length] = '\0';
out:
    return st;
}

static ls_status resolve(const lsi_entries *all, lsi_entry *e, const ls_config *cfg, int depth, ls_err *err)
{
    expansion x = {.all = all, .cfg = cfg, .entry = e, .err = err};
    ls_status st = LS_OK;

    if (e->resolved == LSI_DONE || e->kind != LSI_VALUE) return LS_OK;
    if (e->resolved == LSI_BUSY) return lsi_fail_at(err, &e->value_at, "%s refers to itself", e->written);
    if (depth > LSI_DEPTH_MAX)
        return lsi_fail_at(err, &e->value_at, "%s: more than %d references to references", e->written,
                           LSI_DEPTH_MAX);
    e->resolved = LSI_BUSY;
    LS_TRY(expand(&x, depth));
    e->value = ls_arena_strdup(all->arena, x.text);
    if (e->value == NULL) return ls_fail(err, LS_NOMEM, "experiment: no memory");
    LS_TRY(lsi_convert(e, all->arena, err));
    e->resolved = LSI_DONE;
out:
    return st;
}

ls_status lsi_resolve(const lsi_entries *all, lsi_entry *e, const ls_config *cfg, ls_err *err)
{
    return resolve(all, e, cfg, 0, err);
}
