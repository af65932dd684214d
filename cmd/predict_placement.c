/* predict_placement.c: --placement of `lockstep predict`: which machines of the network the job has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/whole.h"
#include "predict_table.h"

#define FILE_BYTES_MAX ((size_t)16 << 20)
#define MACHINE_MOST   1000000000

static bool is_between(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Numbers with commas, spaces or new lines between them. */
static ls_status read_list(predict_table *t, const char *from, const char *text, ls_err *err)
{
    ls_job_placement *p = &t->placement;
    size_t cap = 0;

    p->kind = LS_PLACE_LIST;
    for (const char *at = text; *at != '\0';) {
        char *end;
        const long x = strtol(at, &end, 10);
        if (is_between(*at)) {
            at++;
            continue;
        }
        if (*at < '0' || *at > '9' || x > MACHINE_MOST || (*end != '\0' && !is_between(*end)))
            return ls_fail(err, LS_INVALID, "--placement %s: \"%.*s\" is no machine's number: 0, 1, ...",
                           from, (int)strcspn(at, ", \t\r\n"), at);
        if (!LS_GROW(LS_MEM_CLI, p->node, t->n_placed + 1, cap))
            return ls_fail(err, LS_NOMEM, "no memory for a placement");
        p->node[t->n_placed++] = (int32_t)x;
        at = end;
    }
    if (t->n_placed == 0) return ls_fail(err, LS_INVALID, "--placement %s: names no machine", from);
    return LS_OK;
}

static ls_status read_file(predict_table *t, const char *path, ls_err *err)
{
    char *text = NULL;
    size_t n;
    ls_err why = {0};
    ls_status st = LS_OK;

    if (ls_whole_plain(&text, &n, path, FILE_BYTES_MAX, &why) != LS_OK)
        LS_TRY(ls_fail(err, LS_INVALID, "--placement: %s", why.text));
    if (strlen(text) != n) LS_TRY(ls_fail(err, LS_INVALID, "--placement %s: is no text", path));
    LS_TRY(read_list(t, path, text, err));
out:
    ls_free(text);
    return st;
}

ls_status predict_placement_read(predict_table *t, const char *word, ls_err *err)
{
    char *end;

    t->placement.kind = LS_PLACE_CONTIGUOUS;
    if (word == NULL || strcmp(word, "contiguous") == 0) return LS_OK;
    t->placement.seed = 1;
    t->placement.kind = LS_PLACE_RANDOM;
    if (strcmp(word, "random") == 0) return LS_OK;
    if (strncmp(word, "random:", 7) == 0) {
        errno = 0;
        t->placement.seed = strtoull(word + 7, &end, 10);
        if (word[7] >= '0' && word[7] <= '9' && *end == '\0' && errno == 0) return LS_OK;
    } else if (strpbrk(word, "/.") != NULL) {
        return read_file(t, word, err);
    } else if (word[0] >= '0' && word[0] <= '9') {
        return read_list(t, word, word, err);
    }
    return ls_fail(err, LS_INVALID,
                   "--placement %s: expected contiguous, random, random:SEED, numbers of machines such as "
                   "0,5,7, or a file of them (with a '/' or '.')",
                   word);
}

ls_status predict_placement_check(const predict_table *t, ls_err *err)
{
    ls_job_placement all = t->placement;

    if (all.kind != LS_PLACE_LIST) return LS_OK;
    all.nodes = t->n_placed;
    return ls_fail_in(err, ls_job_placement_fill(&all, &t->network, err), "--placement");
}

ls_status predict_placement_fill(const predict_table *t, ls_job_placement *p, ls_err *err)
{
    if (p->kind == LS_PLACE_CONTIGUOUS) return LS_OK;
    if (p->kind == LS_PLACE_LIST && p->nodes > t->n_placed)
        return ls_fail(err, LS_INVALID,
                       "--placement names %d machine%s, and %d ranks are on %d: name more, or ask for fewer "
                       "ranks or more on a machine",
                       t->n_placed, t->n_placed == 1 ? "" : "s", (int)p->ranks, (int)p->nodes);
    if (p->kind == LS_PLACE_LIST) return LS_OK; /* checked as a whole */
    p->node = ls_alloc(LS_MEM_CLI, sizeof *p->node * (size_t)p->nodes);
    if (p->node == NULL) return ls_fail(err, LS_NOMEM, "no memory for a placement");
    return ls_job_placement_fill(p, &t->network, err);
}
