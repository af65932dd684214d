/* calibration_steps.c: whole steps of several ranks that were measured, beside what the calibration says of
 * them.
 *
 * Links are known from exchanges alone, nodes from ranks alone; how well both together give a step of several
 * ranks is seen only where such a step was measured.  Files of `bench --export` have its plans with them. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "bench/fields.h"
#include "plans/plans.h"
#include "predict/calibration_internal.h"
#include "predict/program.h"

#define FILE_MAX_BYTES ((size_t)256 << 20)
enum { PLANS_MAX = 64 };

/* A file, while it is looked at. */
typedef struct step {
    const char *path;
    json_t *o;
    const json_t *result;
    ls_document plans[PLANS_MAX];
    int n_plans;
    ls_program program;
} step;

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* Whether the file is of a step that exchanges something, and says how: those of older programs do not. */
static bool exchanges(const step *s)
{
    const json_t *overlap = json_object_get(s->result, "overlap");

    return number(s->result, "ranks") > 1 && number(s->result, "beside") == 0 && json_is_boolean(overlap) &&
           json_is_string(json_object_get(s->result, "wire"));
}

static ls_status open_program(step *s, const ls_machine *m, ls_err *err)
{
    const json_t *r = s->result;
    const char *strategy = json_string_value(json_object_get(r, "strategy"));
    const int32_t ranks = (int32_t)number(r, "ranks"), hosts = (int32_t)number(r, "hosts");
    const int32_t here = (ranks + hosts - 1) / hosts, group = (int32_t)number(r, "shard_group");
    const bool narrow = strcmp(json_string_value(json_object_get(r, "wire")), "fp32") != 0;
    ls_program_args a = {.plans = s->plans,
                         .ranks = ranks,
                         .here = here,
                         .wire_ratio = narrow ? 0.5 : 1,
                         .overlap = json_is_true(json_object_get(r, "overlap"))};
    int n = 1;
    ls_status st = LS_OK;

    if (strategy != NULL && strcmp(strategy, "hybrid") == 0) a.shard_group = group > 0 ? group : here;
    while (s->n_plans < n && s->n_plans < PLANS_MAX) {
        st = ls_document_open(&s->plans[s->n_plans], s->path, s->n_plans, &n, err);
        s->n_plans++; /* is released, too */
        if (st != LS_OK) return st;
    }
    a.n_plans = s->n_plans;
    return ls_program_make(&s->program, &a, m, err);
}

/* Adds what the step took and what it should have taken.  A step that cannot be computed (links between
 * machines that nobody measured) says nothing. */
static ls_status compare(step *s, ls_machine *m, const ls_network *n, ls_err *err)
{
    const int32_t ranks = (int32_t)number(s->result, "ranks"), hosts = (int32_t)number(s->result, "hosts");
    const double measured = number(json_object_get(s->result, "step_s"), "p50");
    const ls_predict_args a = {
        .program = &s->program,
        .machine = m,
        .network = n,
        .placement = {.ranks = ranks, .ranks_per_node = (ranks + hosts - 1) / hosts, .nodes = hosts},
        .algorithm = LS_ALGORITHM_OURS,
        .engine = -1};
    const char *experiment = json_string_value(json_object_get(s->result, "experiment"));
    ls_prediction p;
    ls_err why = {0};
    ls_status st;

    if (hosts > 1 && n->measured_nodes < 2) return LS_OK;
    st = ls_predict(&p, &a, &why);
    if (st == LS_NOMEM) return ls_fail(err, st, "%s", why.text);
    if (st != LS_OK || !(measured > 1e-9 && measured < 1e9 && p.mid > 1e-9)) return LS_OK;
    m->together[m->n_together++] =
        (ls_together){.experiment = ls_arena_strdup(m->arena, experiment != NULL ? experiment : ""),
                      .ranks = ranks,
                      .nodes = hosts,
                      .batch = number(s->result, "batch_per_rank"),
                      .measured_s = measured,
                      .computed_s = p.mid};
    return m->together[m->n_together - 1].experiment != NULL ? LS_OK : ls_fail(err, LS_NOMEM, "no memory");
}

static ls_status look_at(const char *path, ls_machine *m, const ls_network *n, ls_err *err)
{
    step *s = ls_alloc(LS_MEM_CLI, sizeof *s);
    ls_status st = LS_OK;

    if (s == NULL) return ls_fail(err, LS_NOMEM, "no memory for %s", path);
    memset(s, 0, sizeof *s);
    s->path = path;
    LS_TRY(ls_json_read(&s->o, path, FILE_MAX_BYTES, err));
    s->result = json_object_get(s->o, "result");
    if (!exchanges(s)) goto out;
    LS_TRY(open_program(s, m, err));
    LS_TRY(compare(s, m, n, err));
out:
    ls_program_release(&s->program);
    for (int i = 0; i < s->n_plans; i++) ls_document_release(&s->plans[i]);
    json_decref(s->o);
    ls_free(s);
    return st;
}

ls_status lsi_calibration_steps(ls_machine *m, const ls_network *n, const char *const *exports, int n_exports,
                                ls_err *err)
{
    ls_status st = LS_OK;

    m->together = ls_arena_alloc(m->arena, sizeof *m->together * ((size_t)n_exports + 1));
    if (m->together == NULL) return ls_fail(err, LS_NOMEM, "no memory for a machine");
    for (int i = 0; i < n_exports; i++) LS_TRY(look_at(exports[i], m, n, err));
out:
    return st;
}
