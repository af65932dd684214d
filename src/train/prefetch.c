/* prefetch.c: a run of a plan, reduced to its gathers and what lies between them. */
#include "train/prefetch.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "train/limit.h"
#include "train/outline.h"
#include "train/team.h"

enum { GATHERS_MOST = 1024 };

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double ls_prefetch_exposed(const ls_unit_gather *list, int n, int ahead, ls_rates r)
{
    double there[LS_PREFETCH_MOST + 1] = {0}; /* when the last ones came */
    double now = 0, wire = 0, exposed = 0;

    if (ahead > LS_PREFETCH_MOST) ahead = LS_PREFETCH_MOST;
    for (int i = 0; i < n; i++) {
        const double allowed = ahead == 0 ? now : i > ahead ? there[(i - ahead) % (LS_PREFETCH_MOST + 1)] : 0;
        wire = larger(wire, allowed) + list[i].bytes / r.bytes;
        if (wire > now) exposed += wire - now;
        now = there[i % (LS_PREFETCH_MOST + 1)] = larger(now, wire);
        now += list[i].flops / r.flops;
    }
    return exposed;
}

int ls_prefetch_ahead(const ls_unit_gather *list, int n, ls_rates r)
{
    double exposed[LS_PREFETCH_MOST + 1], run = 0;
    int best = 0;

    for (int i = 0; i < n; i++) run += list[i].flops / r.flops;
    for (int p = 0; p <= LS_PREFETCH_MOST; p++) {
        exposed[p] = ls_prefetch_exposed(list, n, p, r);
        if (exposed[p] < exposed[best]) best = p;
    }
    for (int p = 0; p < best; p++)
        if (exposed[p] <= exposed[best] + 0.01 * (run + exposed[best])) return p;
    return best;
}

/* -- choosing ---------------------------------------------------------------------------------------------
 */

const char *ls_prefetch_text(const ls_prefetch_choice *c, char *buf, size_t size)
{
    char a[32], b[32];
    int n = 0;

    buf[0] = '\0';
    if (c->ahead_chosen)
        n = snprintf(buf, size,
                     "%d units ahead%s leave %.1f of %.1f ms of %d gathers exposed, none would leave %.1f "
                     "(a rank gathers %s/s and computes %.0f GFLOP/s)",
                     c->prefetch, c->lowered ? ", as many as memory.limit has room for," : "",
                     1e3 * c->exposed, 1e3 * c->wire, c->gathers, 1e3 * c->exposed_none,
                     ls_text_bytes(c->bytes_s, a), 1e-9 * c->flops_s);
    if (c->regather_chosen && n >= 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n,
                 "%skept for gradients a rank would take %s%s, and memory.limit is %s", n > 0 ? "; " : "",
                 ls_text_bytes((double)c->kept, a),
                 c->kept_again ? " and compute activations again, which costs more than a gather" : "",
                 ls_text_bytes((double)c->limit, b));
    return buf;
}

/* What rank 0 chooses from. */
typedef struct choosing {
    const ls_session *s;
    const ls_session_options *o;
    int here; /* ranks of the machine with the fewest, where each has the most */
    size_t limit;
} choosing;

/* As limit.c counts, where there is a limit. */
static ls_status open_as(ls_outline *x, const choosing *from, const ls_placement *as, ls_err *err)
{
    const ls_outline_options how = {.ranks = from->s->ranks,
                                    .here = from->here,
                                    .threads = from->o->threads,
                                    .untimed = from->limit == 0,
                                    .evaluates = from->o->evaluates,
                                    .tests_only = from->o->tests_only,
                                    .sets = from->o->sets,
                                    .as = as};

    ls_outline_release(x);
    return ls_outline_open(x, from->s->trial, from->s->cfg, &how, err);
}

/* With memory for it weights stay from the forward pass to the gradients, and are gathered once. */
static ls_status choose_kept(ls_prefetch_choice *c, const choosing *from, ls_placement *as, ls_outline *x,
                             ls_err *err)
{
    ls_status st = LS_OK;

    as->regather = LS_REGATHER_NONE;
    if (c->ahead_chosen) as->prefetch = 0; /* what else there is room for is seen later */
    LS_TRY(open_as(x, from, as, err));
    c->limit = from->limit;
    c->kept = ls_outline_memory(x).total;
    c->kept_again = x->recompute.n_chosen > 0;
    if (c->kept <= from->limit && !c->kept_again) goto out;
    as->regather = from->s->place.regather;
    LS_TRY(open_as(x, from, as, err));
out:
    return st;
}

/* Fewer units ahead than would be best, until the whole fits: without more that is computed again than with
 * none ahead, which costs more than a gather that is waited for. */
static ls_status fit(ls_prefetch_choice *c, const choosing *from, ls_placement *as, ls_outline *x,
                     ls_err *err)
{
    int again;
    ls_status st = LS_OK;

    as->prefetch = 0;
    LS_TRY(open_as(x, from, as, err));
    again = x->recompute.n_chosen;
    for (as->prefetch = c->prefetch; as->prefetch > 0; as->prefetch--) {
        LS_TRY(open_as(x, from, as, err));
        if (ls_outline_memory(x).total <= from->limit && x->recompute.n_chosen <= again) break;
    }
    c->lowered = as->prefetch < c->prefetch;
    c->prefetch = as->prefetch;
out:
    return st;
}

/* By what the plan with the gathers says; the step's, or that of its gradients. */
static ls_status choose_ahead(ls_prefetch_choice *c, const choosing *from, ls_placement *as, ls_outline *x,
                              ls_err *err)
{
    const ls_rates r = {c->bytes_s, c->flops_s};
    ls_unit_gather *list = ls_alloc(LS_MEM_PLAN, sizeof *list * GATHERS_MOST);
    int n;
    ls_status st = LS_OK;

    if (list == NULL) return ls_fail(err, LS_NOMEM, "gathers: no memory");
    n = ls_plan_gathers(x->plans[0].plan, list, GATHERS_MOST);
    if (n > GATHERS_MOST) n = GATHERS_MOST;
    for (int i = 0; i < n; i++) c->wire += list[i].bytes / r.bytes;
    c->gathers = n;
    c->prefetch = ls_prefetch_ahead(list, n, r);
    if (from->limit > 0) LS_TRY(fit(c, from, as, x, err));
    c->exposed = ls_prefetch_exposed(list, n, c->prefetch, r);
    c->exposed_none = ls_prefetch_exposed(list, n, 0, r);
out:
    ls_free(list);
    return st;
}

static ls_status choose(ls_prefetch_choice *c, choosing *from, ls_err *err)
{
    const ls_session *s = from->s;
    ls_placement as = s->place;
    ls_outline x = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_memory_limit(s->cfg, &from->limit, err));
    c->regather_chosen = c->regather_chosen && from->limit > 0;
    if (c->regather_chosen)
        LS_TRY(choose_kept(c, from, &as, &x, err));
    else if (c->ahead_chosen)
        LS_TRY(open_as(&x, from, &as, err));
    c->regather = as.regather;
    if (!c->ahead_chosen) goto out;
    LS_TRY(ls_rates_product(&c->flops_s, ls_config_text(s->cfg, "device"), from->o->threads,
                            ls_comm_local_rank(s->comm), ls_session_compute(s->cfg), err));
    LS_TRY(choose_ahead(c, from, &as, &x, err));
out:
    ls_outline_release(&x);
    return st;
}

ls_status ls_prefetch_settle(ls_session *s, const ls_session_options *o, ls_err *err)
{
    ls_prefetch_choice c = {.ahead_chosen = strcmp(ls_config_text(s->cfg, "parallel.prefetch"), "auto") == 0,
                            .regather_chosen = s->place.regather == LS_REGATHER_MOST && !o->tests_only,
                            .prefetch = s->place.prefetch,
                            .regather = s->place.regather};
    choosing from = {.s = s, .o = o};
    double least;
    char text[512];
    ls_status st = LS_OK;

    s->gathers = (ls_prefetch_choice){0};
    /* Who compiles for kernels' sake has the same ones either way. */
    if (s->comm == NULL || s->place.sharding != LS_SHARD_WEIGHTS || o->compile_only) return LS_OK;
    least = -ls_comm_local_size(s->comm);
    LS_TRY(ls_comm_max(s->comm, &least, 1, "counting the ranks of machines", err));
    from.here = (int)-least;
    if (c.ahead_chosen) LS_TRY(ls_rates_gather(&c.bytes_s, s->comm, s->place.group, err));
    if (s->rank == 0) st = choose(&c, &from, err);
    LS_TRY(ls_team_fail_once(s->comm, st, "choosing how weights are gathered", err));
    LS_TRY(ls_comm_broadcast(s->comm, &c, sizeof c, 0, "how weights are gathered", err));
    s->gathers = c;
    s->place.prefetch = c.prefetch;
    s->place.regather = c.regather;
    if (s->rank == 0 && (c.ahead_chosen || c.regather_chosen))
        ls_log(LS_LOG_INFO, "weights: %s", ls_prefetch_text(&c, text, sizeof text));
out:
    return st;
}
