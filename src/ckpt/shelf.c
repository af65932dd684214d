/* shelf.c: see shelf.h. */
#include "ckpt/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"

#define RESERVE ".reserve"
#define ASIDE   ".old" /* see lsi_io_replace */

static const char *path_of(const lsi_shelf *s, const char *name, char buf[LSI_PATH])
{
    /* lsi_shelf_open has made sure that all names fit. */
    if (lsi_io_join(buf, LSI_PATH, s->folder, name, NULL) != LS_OK) buf[0] = '\0';
    return buf;
}

/* -- space ------------------------------------------------------------------------------------------------
 */

void lsi_shelf_unreserve(const lsi_shelf *s)
{
    char path[LSI_PATH];

    unlink(path_of(s, RESERVE, path));
}

void lsi_shelf_reserve(const lsi_shelf *s)
{
    char path[LSI_PATH];
    int fd = open(path_of(s, RESERVE, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    int e = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)s->bytes);

    if (fd >= 0) close(fd);
    if (e == 0) return;
    ls_log(LS_LOG_DEBUG, "%s: no space can be reserved: %s", path, strerror(e));
    unlink(path);
}

const char *lsi_shelf_remedy(const lsi_shelf *s, double free_bytes, char *text, size_t size)
{
    const int keep = s->keep.last + s->keep.best, have = s->n < keep ? s->n : keep;
    /* Besides those that stay, there must be room for the one that is being written. */
    const double fit = floor(free_bytes / (double)(s->bytes > 0 ? s->bytes : 1)) - 1 + have;
    char fewer[80] = "";

    if (fit >= 1 && fit < keep)
        snprintf(fewer, sizeof fewer, ", keep fewer of them (train.keep=%.0f%s)", fit,
                 s->keep.best > 0 ? " train.keep_best=0" : "");
    snprintf(text, size, "make room there%s, or put the run on another disk (--run-dir)", fewer);
    return text;
}

static ls_status check_space(const lsi_shelf *s, ls_err *err)
{
    int keep = s->keep.last + s->keep.best, have = s->n < keep ? s->n : keep;
    double need = (double)s->bytes * (keep + 1 - have), free_bytes = (double)lsi_io_free_bytes(s->folder);
    char a[32], b[32], c[32], d[32], remedy[200];

    if (free_bytes < 0 || need <= free_bytes) return LS_OK;
    return ls_fail(
        err, LS_IO,
        "%s: %d checkpoints of %s beside the %d that are there need %s (%.0f bytes), but %s are free: %s are "
        "missing; %s",
        s->folder, keep + 1 - have, ls_text_bytes((double)s->bytes, a), have, ls_text_bytes(need, b), need,
        ls_text_bytes(free_bytes, c), ls_text_bytes(need - free_bytes, d),
        lsi_shelf_remedy(s, free_bytes, remedy, sizeof remedy));
}

/* -- what is there ----------------------------------------------------------------------------------------
 */

static ls_status append(lsi_shelf *s, int64_t step, double metric, ls_err *err)
{
    if (!LS_GROW(LS_MEM_CKPT, s->items, s->n + 1, s->cap))
        return ls_fail(err, LS_NOMEM, "%s: no memory", s->folder);
    s->items[s->n++] = (lsi_kept){step, metric, true};
    return LS_OK;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Finishes what a killed process was about to do to `name`. */
static void tidy(const lsi_shelf *s, const char *name)
{
    char path[LSI_PATH], whole[LSI_PATH];
    struct stat st;

    path_of(s, name, path);
    snprintf(whole, sizeof whole, "%.*s", (int)(strlen(path) - strlen(ASIDE)), path);
    if (ends_in(name, ASIDE) && stat(whole, &st) != 0 && rename(path, whole) == 0) return;
    lsi_io_remove(path);
}

/* Calls fn for every entry that is called like a checkpoint, whole or not, or like an unfinished link. */
static ls_status each_entry(lsi_shelf *s, ls_status (*fn)(lsi_shelf *, const char *, ls_err *), ls_err *err)
{
    DIR *d = opendir(s->folder);
    struct dirent *e;
    ls_status st = LS_OK;

    if (d == NULL) return ls_fail(err, LS_IO, "%s: cannot be read: %s", s->folder, strerror(errno));
    while (st == LS_OK && (e = readdir(d)) != NULL)
        if (strncmp(e->d_name, "step-", 5) == 0 || strcmp(e->d_name, "last" LSI_CKPT_PARTIAL) == 0 ||
            strcmp(e->d_name, "best" LSI_CKPT_PARTIAL) == 0)
            st = fn(s, e->d_name, err);
    closedir(d);
    return st;
}

static ls_status tidy_entry(lsi_shelf *s, const char *name, ls_err *err)
{
    (void)err;
    if (ends_in(name, LSI_CKPT_PARTIAL) || ends_in(name, ASIDE)) tidy(s, name);
    return LS_OK;
}

static ls_status note_entry(lsi_shelf *s, const char *name, ls_err *err)
{
    char path[LSI_PATH];
    int64_t step = ls_ckpt_step_of(name);
    ls_ckpt *c = NULL;
    ls_err why = {0};
    ls_status st;

    if (step < 0) return LS_OK;
    st = ls_ckpt_open(&c, path_of(s, name, path), &why);
    if (st == LS_OK)
        st = append(s, step, ls_ckpt_metric(c), err);
    else if (st == LS_DATA)
        ls_log(LS_LOG_WARN, "%s: this checkpoint counts as none", why.text);
    else
        return ls_fail(err, st, "%s", why.text);
    ls_ckpt_close(c);
    return st == LS_DATA ? LS_OK : st;
}

static int by_step(const void *a, const void *b)
{
    const lsi_kept *x = a, *y = b;

    return (x->step > y->step) - (x->step < y->step);
}

ls_status lsi_shelf_open(lsi_shelf *s, const char *folder, ls_ckpt_keep keep, size_t bytes, const lsi_io *io,
                         ls_err *err)
{
    ls_status st = LS_OK;
    size_t room = LS_CKPT_NAME + sizeof LSI_CKPT_PARTIAL + sizeof LSI_CKPT_TENSORS + 2;

    *s = (lsi_shelf){.keep = keep, .bytes = bytes, .io = io};
    if (keep.last < 1 || keep.best < 0)
        return ls_fail(err, LS_INVALID, "%s: cannot keep the last %d and the best %d checkpoints", folder,
                       keep.last, keep.best);
    if (strlen(folder) + room > sizeof s->folder)
        return ls_fail(err, LS_INVALID, "%.60s...: the path is too long", folder);
    snprintf(s->folder, sizeof s->folder, "%s", folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return ls_fail(err, LS_IO, "%s: cannot be made: %s", folder, strerror(errno));
    lsi_shelf_unreserve(s);
    LS_TRY(each_entry(s, tidy_entry, err));
    LS_TRY(each_entry(s, note_entry, err));
    if (s->n > 1) qsort(s->items, (size_t)s->n, sizeof *s->items, by_step);
    LS_TRY(check_space(s, err));
    lsi_shelf_reserve(s);
out:
    return st;
}

void lsi_shelf_release(lsi_shelf *s)
{
    if (s->folder[0] != '\0') lsi_shelf_unreserve(s);
    ls_free(s->items);
    *s = (lsi_shelf){0};
}

/* -- which ones stay --------------------------------------------------------------------------------------
 */

/* The best of those for which `stays` is `among`, the older of equals; -1: none has a metric. */
static int best_of(const lsi_shelf *s, bool among)
{
    int best = -1;

    for (int i = 0; i < s->n; i++) {
        double x = s->items[i].metric;
        if (s->items[i].stays != among || isnan(x)) continue;
        if (best < 0 || (s->keep.larger_is_better ? x > s->items[best].metric : x < s->items[best].metric))
            best = i;
    }
    return best;
}

static void decide(lsi_shelf *s)
{
    int best;

    for (int i = 0; i < s->n; i++) s->items[i].stays = false;
    for (int k = 0; k < s->keep.best && (best = best_of(s, false)) >= 0; k++) s->items[best].stays = true;
    for (int i = s->n > s->keep.last ? s->n - s->keep.last : 0; i < s->n; i++) s->items[i].stays = true;
}

static ls_status move_links(const lsi_shelf *s, ls_err *err)
{
    char path[LSI_PATH], name[LS_CKPT_NAME];
    int best = best_of(s, true);
    ls_status st = LS_OK;

    LS_TRY(lsi_io_link(s->io, ls_ckpt_name(s->items[s->n - 1].step, name), path_of(s, "last", path), err));
    if (best >= 0)
        LS_TRY(lsi_io_link(s->io, ls_ckpt_name(s->items[best].step, name), path_of(s, "best", path), err));
    else
        unlink(path_of(s, "best", path));
    LS_TRY(lsi_io_sync_dir(s->io, s->folder, err));
out:
    return st;
}

static void prune(lsi_shelf *s)
{
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        char path[LSI_PATH], partial[LSI_PATH + 16], name[LS_CKPT_NAME];
        if (s->items[i].stays) {
            s->items[n++] = s->items[i];
            continue;
        }
        /* Under its own name there is a whole one or none, at every moment. */
        path_of(s, ls_ckpt_name(s->items[i].step, name), path);
        snprintf(partial, sizeof partial, "%s%s", path, LSI_CKPT_PARTIAL);
        if (rename(path, partial) == 0) lsi_io_remove(partial);
    }
    s->n = n;
}

ls_status lsi_shelf_add(lsi_shelf *s, int64_t step, double metric, ls_err *err)
{
    int n = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < s->n; i++) /* the same step once more, after a resume */
        if (s->items[i].step != step) s->items[n++] = s->items[i];
    s->n = n;
    LS_TRY(append(s, step, isfinite(metric) ? metric : (double)NAN, err));
    decide(s);
    LS_TRY(move_links(s, err));
    prune(s);
out:
    return st;
}
