/* globs.c: lists of patterns. */
#include "base/globs.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { SHOWN = 4 }; /* names that a message lists */

bool ls_globs_next(const char **at, char *glob)
{
    size_t n;

    *at += strspn(*at, ", \t");
    n = strcspn(*at, ",");
    if (n == 0) return false;
    snprintf(glob, LS_GLOB_MAX, "%.*s", (int)n, *at);
    for (size_t k = strlen(glob); k > 0 && (glob[k - 1] == ' ' || glob[k - 1] == '\t'); k--)
        glob[k - 1] = '\0';
    *at += n;
    return true;
}

bool ls_globs_match(const char *list, const char *name)
{
    char glob[LS_GLOB_MAX];

    while (ls_globs_next(&list, glob))
        if (ls_text_glob(glob, name)) return true;
    return false;
}

/* Names that begin as the pattern does up to its first wildcard, for as long as there are such names. */
static size_t longest_start(const char *glob, const char *const *names, size_t n)
{
    size_t best = 0;

    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (glob[k] != '\0' && glob[k] == names[i][k]) k++;
        if (k > best) best = k;
    }
    return best;
}

static ls_status fail(const char *glob, const char *const *names, size_t n, const char *what, ls_err *err)
{
    const char *near = ls_text_nearest(glob, names, n);
    const size_t start = longest_start(glob, names, n);
    ls_text list = {0};
    size_t shown = 0;
    ls_status st;

    if (near != NULL) ls_text_add(&list, "; did you mean \"%s\"?", near);
    for (size_t i = 0; near == NULL && i < n && shown < SHOWN; i++) {
        if (strncmp(names[i], glob, start) != 0) continue;
        ls_text_add(&list, "%s\"%s\"", shown == 0 ? "; there are " : ", ", names[i]);
        shown++;
    }
    if (near == NULL && n > shown) ls_text_add(&list, ", ... (%zu in all)", n);
    st = ls_fail(err, LS_INVALID, "%s: nothing matches \"%s\"%s", what, glob,
                 list.data != NULL ? list.data : "");
    ls_text_release(&list);
    return st;
}

ls_status ls_globs_check(const char *list, const char *const *names, size_t n, const char *what, ls_err *err)
{
    char glob[LS_GLOB_MAX];

    while (ls_globs_next(&list, glob)) {
        bool hit = false;
        for (size_t i = 0; i < n && !hit; i++) hit = ls_text_glob(glob, names[i]);
        if (!hit) return fail(glob, names, n, what, err);
    }
    return LS_OK;
}
