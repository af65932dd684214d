/* predict_way.c: the compiled step of one strategy, and what it takes on so many ranks: what every command
 * that predicts asks. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "predict_table.h"
#include "train/session.h"

/* -- the step ---------------------------------------------------------------------------------------------
 */

/* Ranks that have a model between them, of strategies that have such groups; 0: all ranks are one. */
static int group_of(const char *strategy, const predict_step *s)
{
    const int64_t group = ls_config_int(s->cfg, "parallel.shard_group");

    if (strcmp(strategy, "hybrid") != 0) return 0;
    return group > 0 ? (int)group : s->ranks_per_node;
}

/* A plan for as few ranks as have all that more would have: groups and machines of at least two. */
static int reference_ranks(const predict_step *s, int group)
{
    const int here = s->ranks_per_node > 1 ? s->ranks_per_node : 1;
    const int least = group > here ? group : here;

    return 2 * least;
}

bool predict_by_ranks(const predict_step *s)
{
    return ls_update_of(s->cfg, 1).shards > 0;
}

ls_alternative predict_alternative(const predict_way *w, const predict_step *s, int ranks)
{
    const int here = s->ranks_per_node < ranks ? s->ranks_per_node : ranks;

    return (ls_alternative){.trial = s->trial,
                            .cfg = s->cfg,
                            .how = {.ranks = ranks, .here = here, .threads = s->threads, .untimed = true},
                            .strategy = w->strategy,
                            /* The ranks' own share of batch.global: shards are cut from all of that. */
                            .batch = w->shared && w->only == ranks ? 0 : w->batch};
}

/* A rank alone takes step_time.  Plans for just so many ranks do another part of it each: they are multiplied
 * by the same as the plan of one. */
static ls_status take(ls_program *p, const predict_way *w, const predict_step *s, ls_err *err)
{
    const bool part = p != &w->alone && predict_by_ranks(s);
    ls_status st = LS_OK;

    if (s->step_time <= 0) return LS_OK;
    LS_TRY(ls_program_take(p, part ? w->alone.scale * ls_program_compute(p, 1, 1) : s->step_time, err));
    p->given_s = s->step_time;
out:
    return st;
}

static ls_status program_of(ls_program *p, const predict_way *w, const predict_step *s, ls_outline *o,
                            ls_err *err)
{
    ls_document d[PREDICT_PLANS] = {{0}};
    const bool narrow = strcmp(ls_config_choice(s->cfg, "parallel.wire"), "fp32") != 0;
    const ls_program_args a = {.plans = d,
                               .n_plans = o->n_plans,
                               .ranks = o->ranks,
                               .here = o->here,
                               .shard_group = p == &w->alone ? 0 : w->group,
                               .wire_ratio = narrow ? 0.5 : 1,
                               .overlap = ls_config_bool(s->cfg, "parallel.overlap")};
    ls_status st = LS_OK;

    for (int i = 0; i < o->n_plans; i++) {
        LS_TRY(ls_document_make(&d[i], o->plans[i].plan, err));
        d[i].part = o->plans[i].part;
        d[i].stage = o->plans[i].stage;
        d[i].runs = o->plans[i].runs;
        d[i].batch = o->batch;
    }
    LS_TRY(ls_program_make(p, &a, s->machine, err));
    LS_TRY(take(p, w, s, err));
out:
    for (int i = 0; i < o->n_plans; i++) ls_document_release(&d[i]);
    return st;
}

/* Of the way itself, or what a variant makes of it. */
static ls_status compile(ls_program *p, predict_way *w, const predict_step *s, ls_err *err)
{
    const ls_alternative way = predict_alternative(w, s, w->ranks);
    ls_outline o = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_alternative_open(&way, &o, err));
    if (p == &w->program) {
        w->memory = ls_outline_memory(&o);
        w->recomputed = o.recompute.n_chosen;
    }
    LS_TRY(program_of(p, w, s, &o, err));
out:
    ls_outline_release(&o);
    return st;
}

/* A rank alone has a plan of its own: those of several make pieces of updates, and room for exchanges. */
static ls_status compile_alone(predict_way *w, const predict_step *s, ls_err *err)
{
    const predict_way one = {.strategy = "ddp", .batch = w->batch};
    const ls_alternative way = predict_alternative(&one, s, 1);
    ls_outline o = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_alternative_open(&way, &o, err));
    w->recomputed_alone = o.recompute.n_chosen;
    LS_TRY(program_of(&w->alone, w, s, &o, err));
out:
    ls_outline_release(&o);
    return st;
}

/* What cannot be had is an answer: why. */
static ls_status note_why(ls_status st, char *why, ls_err *err)
{
    if (st != LS_INVALID && st != LS_UNSUPPORTED) return st;
    ls_text_fit(why, LS_ERR_TEXT_MAX, "%s", err->text);
    *err = (ls_err){0};
    return LS_OK;
}

/* Ranks that do not divide batch.global have unequal shares of it, and steps are as long as the largest: all
 * of them take less than as many times that. */
static void find_update(predict_way *w, const predict_step *s)
{
    const int64_t all = ls_update_of(s->cfg, 1).samples;
    const bool shares = (w->shared || w->batch == 0) && ls_config_int(s->cfg, "batch.global") > 0;

    w->own = w->batch > 0 ? w->batch * ls_config_int(s->cfg, "parallel.accumulate") : all;
    w->global = shares ? all : 0;
}

int64_t predict_update_of(const predict_way *w, int ranks)
{
    return w->global > 0 ? w->global : w->own * ranks;
}

ls_status predict_way_open(predict_way *w, const predict_step *s, ls_err *err)
{
    ls_status st = LS_OK;

    find_update(w, s);
    w->group = group_of(w->strategy, s);
    w->ranks = s->ranks > 0                         ? s->ranks
               : w->only > 0 && predict_by_ranks(s) ? w->only
                                                    : reference_ranks(s, w->group);
    LS_TRY(note_why(compile_alone(w, s, err), w->why_alone, err));
    if (w->why_alone[0] != '\0' && s->step_time > 0)
        ls_text_fit(w->why, sizeof w->why, "%s", w->why_alone); /* it is not known what --step-time is of */
    else
        LS_TRY(note_why(compile(&w->program, w, s, err), w->why, err));
out:
    return st;
}

void predict_way_release(predict_way *w)
{
    for (int i = 0; i < PREDICT_VARIANTS; i++) ls_program_release(&w->variant[i]);
    ls_program_release(&w->program);
    ls_program_release(&w->alone);
}

/* The program with a setting that is put back afterwards.  What cannot be compiled is no variant. */
static ls_status open_variant(ls_program *p, predict_way *w, const predict_step *s, const char *key,
                              const char *value, bool *there, ls_err *err)
{
    const ls_setting was = ls_config_at(s->cfg, ls_config_find(s->cfg, key));
    char shown[LS_SETTING_SHOW_MAX], before[LS_SETTING_SHOW_MAX];
    ls_status st = LS_OK, back;

    ls_text_fit(before, sizeof before, "%s", ls_setting_show(&was, shown));
    LS_TRY(ls_config_put(s->cfg, key, value, err));
    st = compile(p, w, s, err);
    *there = st == LS_OK;
    if (st == LS_INVALID || st == LS_UNSUPPORTED) {
        *err = (ls_err){0};
        st = LS_OK;
    }
    back = ls_config_put(s->cfg, key, before, &(ls_err){0});
    LS_BUG_IF(back != LS_OK);
out:
    return st;
}

ls_status predict_variants_open(predict_way *w, const predict_step *s, ls_err *err)
{
    const bool overlap = ls_config_bool(s->cfg, "parallel.overlap");
    const double bucket = 4 * ls_config_real(s->cfg, "parallel.bucket_mb");
    char value[24];
    bool there;
    ls_status st = LS_OK;

    w->variant_brief[0] = overlap ? "no overlap" : "overlap";
    w->variant_brief[1] = "buckets x 4";
    if (w->why[0] != '\0' || w->program.n_transfers == 0) return LS_OK;
    LS_TRY(open_variant(&w->variant[0], w, s, "parallel.overlap", overlap ? "false" : "true", &there, err));
    if (there)
        snprintf(w->variant_name[0], sizeof w->variant_name[0], "parallel.overlap=%s",
                 overlap ? "false" : "true");
    snprintf(value, sizeof value, "%.6g", bucket);
    LS_TRY(open_variant(&w->variant[1], w, s, "parallel.bucket_mb", value, &there, err));
    /* A model whose gradients fit into one bucket has no larger ones. */
    if (there && w->variant[1].n_transfers != w->program.n_transfers)
        snprintf(w->variant_name[1], sizeof w->variant_name[1], "parallel.bucket_mb=%s", value);
out:
    return st;
}

/* -- the answers ------------------------------------------------------------------------------------------
 */

ls_predict_args predict_args_of(const predict_table *t, const predict_row *r)
{
    const predict_way *w = &t->way[r->way];
    const int64_t samples = predict_update_of(w, r->ranks);
    /* Of a rank's share of them, the mean one. */
    const double share = (double)samples / ((double)w->own * r->ranks);
    ls_predict_args a = {.program = r->ranks == 1 ? &w->alone : &w->program,
                         .samples = samples,
                         .alone_s = share * ls_program_compute(&w->alone, 1, 1),
                         .machine = &t->machine,
                         .network = &t->network,
                         .placement = t->placement,
                         .algorithm = t->algorithm,
                         .engine = t->engine,
                         .seed = t->placement.seed};

    a.placement.ranks = r->ranks;
    if (a.placement.ranks_per_node > r->ranks) a.placement.ranks_per_node = r->ranks;
    a.placement.nodes = (r->ranks + a.placement.ranks_per_node - 1) / a.placement.ranks_per_node;
    return a;
}

/* *a with the machines of its placement, which undraw gives back. */
static ls_status draw(ls_predict_args *with, const predict_table *t, const ls_predict_args *a, ls_err *err)
{
    *with = *a;
    return predict_placement_fill(t, &with->placement, err);
}

static void undraw(ls_predict_args *with, const ls_predict_args *a)
{
    if (with->placement.node != a->placement.node) ls_free(with->placement.node);
}

ls_status predict_answer(const predict_table *t, const ls_predict_args *a, ls_prediction *out, ls_err *err)
{
    ls_predict_args with;
    ls_status st = draw(&with, t, a, err);

    if (st == LS_OK) st = ls_predict(out, &with, err);
    undraw(&with, a);
    return st;
}

ls_status predict_answer_timeline(const predict_table *t, const ls_predict_args *a, ls_predict_span **spans,
                                  int *n, ls_err *err)
{
    ls_predict_args with;
    ls_status st = draw(&with, t, a, err);

    if (st == LS_OK) st = ls_predict_timeline(&with, spans, n, err);
    undraw(&with, a);
    return st;
}

/* A link that no calibration saw has the figures of the other one, which say nothing of it.  Presets and
 * files made by hand do not say what was measured, and are taken at their word. */
static bool is_unmeasured(const ls_network *n, const ls_job_placement *p, char *why, size_t size)
{
    if (p->nodes > 1 && n->measured_ranks > 0 && n->measured_nodes < 2) {
        ls_text_fit(why, size,
                    "%s: nothing was measured between machines, and these are %d; calibrate with --nodes, or "
                    "give another --network",
                    n->name, (int)p->nodes);
        return true;
    }
    if (p->ranks_per_node > 1 && n->measured_per_node == 1) {
        ls_text_fit(
            why, size,
            "%s: nothing was measured between ranks of a machine, and these are %d on each; calibrate "
            "with two or more ranks a machine, ask with --ranks-per-node 1, or give another --network",
            n->name, (int)p->ranks_per_node);
        return true;
    }
    return false;
}

ls_status predict_answer_row(const predict_table *t, predict_row *r, ls_err *err)
{
    const predict_way *w = &t->way[r->way];
    const ls_predict_args a = predict_args_of(t, r);
    const int group = w->program.shard_group;
    const char *why = r->ranks == 1 && w->why[0] == '\0' ? w->why_alone : w->why;
    ls_status st;

    if (why[0] != '\0') {
        memcpy(r->why, why, sizeof r->why);
        return LS_OK;
    }
    if (is_unmeasured(&t->network, &a.placement, r->why, sizeof r->why)) return LS_OK;
    if (group > 0 && r->ranks % group != 0) {
        ls_text_fit(r->why, sizeof r->why, "%d ranks do not make up groups of %d", r->ranks, group);
        return LS_OK;
    }
    st = predict_answer(t, &a, &r->p, err);
    if (st != LS_INVALID) return st;
    ls_text_fit(r->why, sizeof r->why, "%s", err->text); /* more machines than the network has */
    *err = (ls_err){0};
    return LS_OK;
}
