/* limit.c: memory.limit: refused before the first byte is taken, with what would fit. */
#include "train/limit.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "train/alternatives.h"
#include "train/team.h"

ls_recompute_mode ls_recompute_mode_of(ls_config *cfg)
{
    return (ls_recompute_mode)ls_config_int(cfg, "train.recompute");
}

ls_status ls_memory_limit(ls_config *cfg, size_t *out, ls_err *err)
{
    const char *text = ls_config_text(cfg, "memory.limit");

    *out = 0;
    if (text[0] == '\0') return LS_OK;
    return ls_text_parse_bytes(text, "memory.limit", out, err);
}

static void add_kind(ls_text *t, const char *name, size_t bytes)
{
    char buf[32];

    if (bytes > 0) ls_text_add(t, ", %s %s", name, ls_text_bytes((double)bytes, buf));
}

/* What is planned, by kind. */
static void say_planned(ls_text *t, ls_plan_memory m, size_t limit)
{
    char a[32], b[32];

    ls_text_add(t, "memory.limit is %s, and a rank would take %s", ls_text_bytes((double)limit, a),
                ls_text_bytes((double)m.total, b));
    add_kind(t, "weights", m.weights);
    add_kind(t, "gradients", m.gradients);
    add_kind(t, "optimizer", m.optimizer);
    add_kind(t, "activations", m.activations);
    add_kind(t, "scratch", m.scratch);
    add_kind(t, "exchange", m.comm);
}

typedef struct asking {
    ls_text *text;
    ls_alternative way; /* as the settings are */
    size_t limit;
    int found;
    size_t least; /* of all that was tried */
} asking;

static void say_way(asking *a, const char *settings, size_t bytes)
{
    char buf[32];

    if (bytes == 0) return; /* it cannot be had at all */
    if (a->least == 0 || bytes < a->least) a->least = bytes;
    if (bytes > a->limit) return;
    ls_text_add(a->text, "%s%s (%s)", a->found++ == 0 ? "; what would fit: " : ", ", settings,
                ls_text_bytes((double)bytes, buf));
}

/* Whether what can be computed again is: by the settings, or because there are no gradients to compute it
 * for. */
static bool is_again(const asking *a)
{
    return a->way.how.tests_only || ls_recompute_mode_of(a->way.cfg) != LS_RECOMPUTE_NONE;
}

/* With the same batch: computed again, shared out, or both. */
static void ask_ways(asking *a)
{
    const char *strategies = ls_alternative_strategies(a->way.cfg);
    const bool again = is_again(a);
    char name[32], own[32], text[96];

    /* A copy: trying others changes the setting. */
    snprintf(own, sizeof own, "%s", ls_config_choice(a->way.cfg, "parallel.strategy"));
    if (!again) {
        ls_alternative way = a->way;
        way.recompute = "unit";
        say_way(a, "train.recompute=unit", ls_alternative_bytes(&way));
    }
    while (a->way.how.ranks > 1 && ls_alternative_next(&strategies, name, sizeof name)) {
        ls_alternative way = a->way;
        const int before = a->found;
        if (strcmp(name, own) == 0) continue;
        way.strategy = name;
        snprintf(text, sizeof text, "parallel.strategy=%s", name);
        say_way(a, text, ls_alternative_bytes(&way));
        if (again || a->found > before) continue;
        way.recompute = "unit";
        snprintf(text, sizeof text, "parallel.strategy=%s train.recompute=unit", name);
        say_way(a, text, ls_alternative_bytes(&way));
    }
}

/* With a smaller one, as it is and computed again. */
static void ask_batches(asking *a)
{
    const int64_t now = ls_config_int(a->way.cfg, "batch.per_rank");
    const int64_t global = ls_config_int(a->way.cfg, "batch.global"),
                  accumulate = ls_config_int(a->way.cfg, "parallel.accumulate");
    const bool again = is_again(a);

    for (int k = 0; k < (again ? 1 : 2); k++) {
        ls_alternative way = a->way;
        char text[96];
        size_t bytes = 0;
        if (k > 0) way.recompute = "unit";
        way.batch = ls_alternative_largest(&way, a->limit, now - 1, &bytes);
        snprintf(text, sizeof text, "%s=%lld%s", global > 0 ? "batch.global" : "batch.per_rank",
                 (long long)(global > 0 ? way.batch * a->way.how.ranks * accumulate : way.batch),
                 k > 0 ? " train.recompute=unit" : "");
        if (way.batch > 0 || k > 0 || again) say_way(a, text, bytes);
        if (way.batch > 0) return;
    }
}

/* LS_INVALID, always. */
static ls_status refuse(const ls_trial *trial, ls_config *cfg, const ls_outline_options *o, ls_plan_memory m,
                        size_t limit, ls_err *err)
{
    ls_text text = {0};
    char buf[32];
    asking a = {
        .text = &text, .way = {.trial = trial, .cfg = cfg, .how = *o}, .limit = limit, .least = m.total};
    ls_status st;

    say_planned(&text, m, limit);
    ask_ways(&a);
    ask_batches(&a);
    if (a.found == 0)
        ls_text_add(&text,
                    "; nothing that was tried fits, the least takes %s: a larger limit, more ranks or a "
                    "smaller model",
                    ls_text_bytes((double)a.least, buf));
    st = ls_fail(err, LS_INVALID, "%s", text.data != NULL ? text.data : "memory.limit is too small");
    ls_text_release(&text);
    return st;
}

/* Rank 0's answer: what units are computed again, or why it cannot be. */
static ls_status decide(ls_memory_choice *out, const ls_session *s, const ls_session_options *o, int here,
                        ls_err *err)
{
    const ls_outline_options how = {.ranks = s->ranks,
                                    .here = here,
                                    .threads = o->threads,
                                    .evaluates = o->evaluates,
                                    .tests_only = o->tests_only,
                                    .sets = o->sets};
    ls_outline_options own = how;
    ls_outline x = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_memory_limit(s->cfg, &out->limit, err));
    if (out->limit == 0) goto out;
    own.as = &s->place;
    LS_TRY(ls_outline_open(&x, s->trial, s->cfg, &own, err));
    out->recompute = x.recompute.units;
    out->planned = ls_outline_memory(&x).total;
    if (out->planned > out->limit)
        st = refuse(s->trial, s->cfg, &how, ls_outline_memory(&x), out->limit, err);
out:
    ls_outline_release(&x);
    return st;
}

/* Of the machine that has the fewest ranks, where each has the most. */
static ls_status count_here(const ls_session *s, int *here, ls_err *err)
{
    double least = s->comm != NULL ? -ls_comm_local_size(s->comm) : -1;
    ls_status st = LS_OK;

    if (s->comm != NULL) LS_TRY(ls_comm_max(s->comm, &least, 1, "counting the ranks of machines", err));
    *here = (int)-least;
out:
    return st;
}

ls_status ls_memory_settle(ls_memory_choice *out, const ls_session *s, const ls_session_options *o,
                           ls_err *err)
{
    int here = 1;
    ls_status st = LS_OK;

    *out = (ls_memory_choice){.recompute = {.all = ls_recompute_mode_of(s->cfg) == LS_RECOMPUTE_UNIT}};
    /* Who compiles for kernels' sake takes no memory, and has the same ones either way. */
    if (o->compile_only) return LS_OK;
    LS_TRY(count_here(s, &here, err));
    if (s->rank == 0) st = decide(out, s, o, here, err);
    LS_TRY(ls_team_fail_once(s->comm, st, "asking for memory.limit", err));
    if (s->comm != NULL) LS_TRY(ls_comm_broadcast(s->comm, out, sizeof *out, 0, "what a rank may take", err));
out:
    return st;
}
