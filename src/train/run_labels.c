/* run_labels.c: how the runs of a document are called. */
#include <string.h>

#include "base/alloc.h"
#include "train/run_pages.h"

/* Names are shortened only where they are long, and some of each is left. */
enum { LONG_NAME = 20, LEAST_LEFT = 4 };

static bool is_unique(const ls_past_run *runs, int n, int k)
{
    for (int i = 0; i < n; i++)
        if (i != k && strcmp(runs[i].name, runs[k].name) == 0) return false;
    return true;
}

/* Bytes of the beginning that all labels share, up to a sign that separates words. */
static size_t shared_beginning(const ls_page_runs *p)
{
    const char *first = p->label[0];
    size_t n = strlen(first), longest = n, shortest = n;

    for (int k = 1; k < p->n; k++) {
        size_t same = 0;
        while (same < n && p->label[k][same] == first[same]) same++;
        n = same;
        if (strlen(p->label[k]) > longest) longest = strlen(p->label[k]);
        if (strlen(p->label[k]) < shortest) shortest = strlen(p->label[k]);
    }
    while (n > 0 && (strchr("-_/", first[n - 1]) == NULL || shortest < n + LEAST_LEFT)) n--;
    return longest > LONG_NAME ? n : 0;
}

ls_status ls_page_runs_of(ls_page_runs *out, const ls_past_run *runs, int n, ls_arena *arena, size_t *shared,
                          ls_err *err)
{
    *out = (ls_page_runs){.runs = runs, .n = n};
    *shared = 0;
    for (int k = 0; k < n; k++)
        out->label[k] = ls_arena_strdup(arena, is_unique(runs, n, k) ? runs[k].name : runs[k].path);
    for (int k = 0; k < n; k++)
        if (out->label[k] == NULL) return ls_fail(err, LS_NOMEM, "no memory for the names of runs");
    if (n > 1) *shared = shared_beginning(out);
    for (int k = 0; k < n; k++) out->label[k] += *shared;
    return LS_OK;
}
