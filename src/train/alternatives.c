/* alternatives.c: the step under other settings, and the largest batch that fits. */
#include "train/alternatives.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "config/experiment.h"

/* -- settings that are others for a while -----------------------------------------------------------------
 */

enum { CHANGES = 5 };

typedef struct change {
    const char *key;
    char *before; /* owned; NULL: not changed */
} change;

static ls_status put(ls_config *cfg, change *c, const char *key, const char *value, ls_err *err)
{
    const ls_setting s = ls_config_at(cfg, ls_config_find(cfg, key));
    char buf[LS_SETTING_SHOW_MAX];

    c->key = key;
    c->before = ls_strdup(LS_MEM_CLI, ls_setting_show(&s, buf));
    if (c->before == NULL) return ls_fail(err, LS_NOMEM, "no memory");
    return ls_config_put(cfg, key, value, err);
}

int64_t ls_alternative_share(const ls_alternative *a)
{
    int64_t share;

    return ls_experiment_share(a->cfg, a->how.ranks, &share, &(ls_err){0}) == LS_OK ? share : 0;
}

static ls_status share_batch(const ls_alternative *a, change *c, ls_err *err)
{
    char batch[32];
    int64_t share;
    const ls_status st = ls_experiment_share(a->cfg, a->how.ranks, &share, err);

    if (st != LS_OK || share == 0) return st;
    snprintf(batch, sizeof batch, "%lld", (long long)share);
    return put(a->cfg, c, "batch.per_rank", batch, err);
}

static ls_status change_all(const ls_alternative *a, change list[CHANGES], ls_err *err)
{
    char batch[32], width[32];
    ls_status st = LS_OK;

    if (a->strategy != NULL) LS_TRY(put(a->cfg, &list[0], "parallel.strategy", a->strategy, err));
    if (a->recompute != NULL) LS_TRY(put(a->cfg, &list[1], "train.recompute", a->recompute, err));
    if (a->batch > 0) {
        snprintf(batch, sizeof batch, "%lld", (long long)a->batch);
        LS_TRY(put(a->cfg, &list[2], "batch.global", "0", err)); /* it would say what a rank has */
        LS_TRY(put(a->cfg, &list[3], "batch.per_rank", batch, err));
    } else {
        LS_TRY(share_batch(a, &list[3], err));
    }
    if (a->width > 0) {
        snprintf(width, sizeof width, "%lld", (long long)a->width);
        LS_TRY(put(a->cfg, &list[4], "model.width", width, err));
    }
out:
    return st;
}

/* They were valid before. */
static void change_back(const ls_alternative *a, change list[CHANGES])
{
    for (int i = CHANGES - 1; i >= 0; i--) {
        if (list[i].before == NULL) continue;
        const ls_status st = ls_config_put(a->cfg, list[i].key, list[i].before, &(ls_err){0});
        LS_BUG_IF(st != LS_OK);
        ls_free(list[i].before);
    }
}

ls_status ls_alternative_open(const ls_alternative *a, ls_outline *x, ls_err *err)
{
    change list[CHANGES] = {{0}};
    ls_status st = change_all(a, list, err);

    *x = (ls_outline){0};
    if (st == LS_OK) st = ls_outline_open(x, a->trial, a->cfg, &a->how, err);
    change_back(a, list);
    return st;
}

size_t ls_alternative_bytes(const ls_alternative *a)
{
    ls_alternative way = *a;
    ls_outline x = {0};
    ls_status st;

    way.how.untimed = true; /* many are asked about, of which one will be run */
    st = ls_alternative_open(&way, &x, &(ls_err){0});
    const size_t bytes = st == LS_OK ? ls_outline_memory(&x).total : 0;

    ls_outline_release(&x);
    return bytes;
}

/* -- the largest batch or model ---------------------------------------------------------------------------
 */

/* What is made larger: the batch, or where `step` is not 0 the width, by so much. */
typedef struct growing {
    const ls_alternative *a;
    int64_t step;
    int64_t now; /* what it is: when that fits, nothing smaller is the largest */
} growing;

static size_t bytes_with(const growing *g, int64_t n)
{
    ls_alternative way = *g->a;

    if (g->step > 0)
        way.width = n * g->step;
    else
        way.batch = n;
    return ls_alternative_bytes(&way);
}

/* A number between lo, which fits, and hi, which does not (0: not known), where a straight line meets the
 * limit: memory is nearly that.  After some tries in the middle, in case it is not. */
static int64_t guess(int64_t lo, double lo_bytes, int64_t hi, double per_sample, double limit, int64_t most,
                     int turn)
{
    double at = per_sample > 0 ? floor((double)lo + (limit - lo_bytes) / per_sample) : (double)most;

    if (turn > 6 && hi > 0) at = floor((double)(lo + hi) / 2);
    if (at > (double)(hi > 0 ? hi - 1 : most)) at = (double)(hi > 0 ? hi - 1 : most);
    return at > (double)lo + 1 ? (int64_t)at : lo + 1;
}

static int64_t largest(const growing *g, size_t limit, int64_t most, size_t *bytes)
{
    int64_t lo = 1, hi = 0;
    size_t lo_bytes = most > 0 ? bytes_with(g, 1) : 0, now_bytes;
    double per_sample = 0;

    *bytes = lo_bytes;
    if (lo_bytes == 0 || lo_bytes > limit) return 0;
    now_bytes = g->now > 1 && g->now <= most ? bytes_with(g, g->now) : 0;
    if (now_bytes > 0 && now_bytes <= limit) {
        lo = g->now;
        lo_bytes = now_bytes;
        per_sample = ((double)now_bytes - (double)*bytes) / (double)(lo - 1);
    }
    for (int turn = 0; lo < most && hi != lo + 1; turn++) {
        const int64_t next =
            lo == 1 && turn == 0 ? 2 : guess(lo, (double)lo_bytes, hi, per_sample, (double)limit, most, turn);
        const size_t next_bytes = bytes_with(g, next);
        if (next_bytes == 0 || next_bytes > limit) {
            hi = next;
        } else {
            lo = next;
            lo_bytes = next_bytes;
        }
        if (next_bytes > 0 && next > 1)
            per_sample = ((double)next_bytes - (double)*bytes) / (double)(next - 1);
    }
    *bytes = lo_bytes;
    return lo;
}

int64_t ls_alternative_largest(const ls_alternative *a, size_t limit, int64_t most, size_t *bytes)
{
    const int64_t share = ls_alternative_share(a);

    return largest(&(growing){.a = a, .now = share > 0 ? share : ls_config_int(a->cfg, "batch.per_rank")},
                   limit, most, bytes);
}

int64_t ls_alternative_widest(const ls_alternative *a, size_t limit)
{
    const int at = ls_config_find(a->cfg, "model.width");
    const int64_t heads =
        ls_config_find(a->cfg, "model.heads") >= 0 ? ls_config_int(a->cfg, "model.heads") : 1;
    size_t bytes;

    if (at < 0) return -1;
    return heads * largest(&(growing){a, heads, ls_config_int(a->cfg, "model.width") / heads}, limit,
                           (int64_t)ls_config_at(a->cfg, at).hi / heads, &bytes);
}

/* -- strategies -------------------------------------------------------------------------------------------
 */

const char *ls_alternative_strategies(ls_config *cfg)
{
    return ls_config_at(cfg, ls_config_find(cfg, "parallel.strategy")).choices;
}

bool ls_alternative_next(const char **list, char *name, size_t size)
{
    size_t n;

    *list += strspn(*list, " ");
    n = strcspn(*list, " ");
    if (n == 0) return false;
    snprintf(name, size, "%.*s", (int)n, *list);
    *list += n;
    return true;
}
