/* step.c: the step object: scopes, names, parameters and what is kept about them. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/globs.h"
#include "base/text.h"
#include "nn/nn_internal.h"

ls_status ls_step_create(ls_step **out, int64_t batch, ls_mode mode, ls_err *err)
{
    return ls_step_create_as(out, batch, &(ls_build){.mode = mode}, err);
}

ls_status ls_step_create_as(ls_step **out, int64_t batch, const ls_build *how, ls_err *err)
{
    ls_status st = LS_OK;
    ls_step *s = ls_alloc(LS_MEM_GRAPH, sizeof *s);

    *out = NULL;
    if (s == NULL) return ls_fail(err, LS_NOMEM, "step: no memory");
    if (batch < 1) {
        st = ls_fail(err, LS_INVALID, "step: the batch must be at least 1, got %lld", (long long)batch);
        goto out;
    }
    s->batch = batch;
    s->mode = how->mode;
    s->how = *how;
    LS_TRY(ls_arena_create(&s->arena, LS_MEM_GRAPH, err));
    LS_TRY(ls_graph_create(&s->g, err));
    if (how->freeze != NULL) {
        s->how.freeze = ls_arena_strdup(s->arena, how->freeze);
        if (s->how.freeze == NULL) {
            st = ls_fail(err, LS_NOMEM, "step: no memory");
            goto out;
        }
    }
    s->rng = s->loss_scale = (ls_value){s->g, -1}; /* made when a layer or a loss first needs them */
    *out = s;
    s = NULL;
out:
    ls_step_destroy(s);
    return st;
}

void ls_step_destroy(ls_step *s)
{
    if (s == NULL) return;
    ls_graph_destroy(s->g);
    ls_arena_destroy(s->arena);
    ls_free(s);
}

int64_t ls_step_batch(const ls_step *s)
{
    return s->batch;
}

bool ls_step_training(const ls_step *s)
{
    return s->mode == LS_TRAIN;
}

ls_status ls_step_status(const ls_step *s, ls_err *err)
{
    if (s->g != NULL) return ls_graph_status(s->g, err);
    if (s->taken_err.status == LS_OK) return LS_OK;
    return ls_fail(err, s->taken_err.status, "%s", s->taken_err.text);
}

/* A pattern that matches nothing would train what was meant to stay, and nobody trains nothing. */
static void check_freeze(ls_step *s)
{
    const char **names;
    ls_err why = {0};

    if (s->how.freeze == NULL || s->how.freeze[0] == '\0' || s->mode != LS_TRAIN) return;
    s->g->here = (ls_src){0};
    names = ls_arena_alloc(s->arena, sizeof *names * ((size_t)s->n_params + 1));
    if (names == NULL) {
        ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
        return;
    }
    for (int i = 0; i < s->n_params; i++) names[i] = s->params[i].name;
    if (ls_globs_check(s->how.freeze, names, (size_t)s->n_params, "train.freeze", &why) != LS_OK)
        ls_graph_fail(s->g, why.status, "%s", why.text);
    else if (s->spared && !s->trains)
        ls_graph_fail(s->g, LS_INVALID, "train.freeze: \"%s\" leaves no parameter to be trained",
                      s->how.freeze);
}

ls_graph *ls_step_graph_take(ls_step *s)
{
    ls_graph *g = s->g;

    LS_BUG_IF(g == NULL);
    if (s->n_scopes > 0) lsi_step_fail(s, "scope \"%s\" was never popped", s->scopes[s->n_scopes - 1]);
    if (s->n_units > 0) lsi_step_fail(s, "unit \"%s\" was never ended", ls_graph_unit(g, g->unit));
    if (lsi_step_open(s)) check_freeze(s);
    s->taken_err = g->err; /* the step is asked for its status also when the graph is somebody else's */
    s->g = NULL;
    return g;
}

void lsi_step_at(ls_step *s, ls_at at)
{
    if (s->g != NULL) s->g->here = (ls_src){at.file, at.line};
}

bool lsi_step_open(const ls_step *s)
{
    return s->g != NULL && s->g->err.status == LS_OK;
}

ls_value lsi_step_none(const ls_step *s)
{
    return (ls_value){s->g, -1};
}

ls_value lsi_step_fail(ls_step *s, const char *fmt, ...)
{
    char text[LS_ERR_TEXT_MAX];
    va_list ap;

    if (s->g == NULL) return lsi_step_none(s);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ls_graph_fail(s->g, LS_INVALID, "%s", text);
}

static ls_value fail_nomem(ls_step *s)
{
    return ls_graph_fail(s->g, LS_NOMEM, "step: no memory");
}

bool lsi_step_grow(ls_step *s, void **array, int n, int *cap, size_t size)
{
    int want = *cap * 2 + 16;
    void *p;

    if (n < *cap) return true;
    /* The old array stays where it is, in the arena: all of them together are no longer than the last. */
    p = ls_arena_alloc(s->arena, (size_t)want * size);
    if (p == NULL) {
        fail_nomem(s);
        return false;
    }
    if (n > 0) memcpy(p, *array, (size_t)n * size);
    *array = p;
    *cap = want;
    return true;
}

/* -- names and scopes -------------------------------------------------------------------------------------
 */

/* Names become keys of files and patterns of globs, so they are kept to what needs no quoting. */
static bool name_is_plain(const char *name)
{
    if (name[0] == '\0' || name[0] == '.') return false;
    for (const char *c = name; *c != '\0'; c++) {
        bool alnum = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!alnum && *c != '_' && *c != '-' && *c != '.') return false;
    }
    return true;
}

const char *lsi_step_name(ls_step *s, const char *name)
{
    const char *full;

    if (!lsi_step_open(s)) return NULL;
    if (name == NULL || !name_is_plain(name)) {
        lsi_step_fail(s, "\"%s\" is no name: letters, digits, '_', '-' and inner dots make one",
                      name != NULL ? name : "");
        return NULL;
    }
    full = s->n_scopes > 0 ? ls_arena_printf(s->arena, "%s.%s", s->scopes[s->n_scopes - 1], name)
                           : ls_arena_strdup(s->arena, name);
    if (full == NULL) fail_nomem(s);
    return full;
}

/* The graph's nodes hold on to the scope's text, so it has to live in the graph's arena. */
static void set_graph_scope(ls_step *s, const char *scope)
{
    const char *copy = ls_arena_strdup(s->g->arena, scope);

    if (copy != NULL)
        s->g->scope = copy;
    else
        fail_nomem(s);
}

void ls_scope_push(ls_step *s, const char *fmt, ...)
{
    char text[256];
    const char *full;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    full = lsi_step_name(s, text);
    if (full == NULL) return;
    if (s->n_scopes == LSI_MAX_SCOPES) {
        lsi_step_fail(s, "more than %d scopes inside each other", LSI_MAX_SCOPES);
        return;
    }
    s->scopes[s->n_scopes++] = full;
    set_graph_scope(s, full);
}

void ls_scope_pop(ls_step *s)
{
    if (!lsi_step_open(s)) return;
    if (s->n_scopes == 0) {
        lsi_step_fail(s, "ls_scope_pop without a scope");
        return;
    }
    s->n_scopes--;
    set_graph_scope(s, s->n_scopes > 0 ? s->scopes[s->n_scopes - 1] : "");
}

void ls_unit_begin(ls_step *s, const char *name)
{
    const char *full = NULL;

    if (!lsi_step_open(s)) return;
    if (s->n_units++ > 0) return; /* the outermost counts */
    if (name != NULL)
        full = lsi_step_name(s, name);
    else if (s->n_scopes > 0)
        full = s->scopes[s->n_scopes - 1];
    else
        lsi_step_fail(s, "ls_unit_begin without a name outside of all scopes");
    if (full != NULL) s->g->unit = ls_graph_add_unit(s->g, full);
}

void ls_unit_end(ls_step *s)
{
    if (!lsi_step_open(s)) return;
    if (s->n_units == 0)
        lsi_step_fail(s, "ls_unit_end without ls_unit_begin");
    else if (--s->n_units == 0)
        s->g->unit = 0;
}

/* Layers are not nested, so that one saved scope is enough; what contains layers pushes a scope. */
const char *lsi_layer_enter(ls_step *s, ls_at at, const char *name)
{
    const char *full;

    lsi_step_at(s, at);
    full = lsi_step_name(s, name);
    if (full == NULL) return NULL;
    s->saved_scope = s->g->scope;
    set_graph_scope(s, full);
    return full;
}

void lsi_layer_leave(ls_step *s)
{
    s->g->scope = s->saved_scope;
}

/* -- variables --------------------------------------------------------------------------------------------
 */

static void record_param(ls_step *s, const char *name, ls_shape shape)
{
    if (!lsi_step_grow(s, (void **)&s->params, s->n_params, &s->cap_params, sizeof *s->params)) return;
    s->params[s->n_params++] = (lsi_param_info){name, ls_shape_count(shape)};
}

ls_value lsi_variable(ls_step *s, const char *layer, const char *what, ls_var_role role, ls_dtype dtype,
                      ls_shape shape, ls_init init)
{
    const char *name;
    bool known;
    ls_value v;

    if (!lsi_step_open(s)) return lsi_step_none(s);
    name = what != NULL ? ls_arena_printf(s->arena, "%s.%s", layer, what) : layer;
    if (name == NULL) return fail_nomem(s);
    known = ls_graph_find_var(s->g, name) >= 0; /* a layer that is called again shares its parameters */
    v = ls_graph_variable(s->g, name, role, dtype, shape, init);
    if (ls_value_ok(v) && role == LS_VAR_PARAM && !known) record_param(s, name, shape);
    return v;
}

/* PyTorch's own rule is Kaiming's for a leaky ReLU of slope sqrt(5), which comes down to 1 / sqrt(fan_in);
 * then Glorot and Bengio (2010), and He et al. (2015) by what leaves the layer, as ResNets are begun. */
ls_init lsi_init_weight(ls_init_rule rule, double fan_in, double fan_out)
{
    switch (rule.how) {
    case LS_HOW_TORCH: return (ls_init){LS_INIT_UNIFORM, 1.0 / sqrt(fan_in)};
    case LS_HOW_GLOROT: return (ls_init){LS_INIT_UNIFORM, sqrt(6.0 / (fan_in + fan_out))};
    case LS_HOW_KAIMING_OUT: return (ls_init){LS_INIT_NORMAL, sqrt(2.0 / fan_out)};
    case LS_HOW_NORMAL: return (ls_init){LS_INIT_NORMAL, rule.a};
    case LS_HOW_TRUNC_NORMAL: return (ls_init){LS_INIT_TRUNC_NORMAL, rule.a};
    case LS_HOW_UNIFORM: return (ls_init){LS_INIT_UNIFORM, rule.a};
    default: return (ls_init){LS_INIT_CONST, rule.a};
    }
}

ls_init lsi_init_bias(ls_init_rule rule, double fan_in)
{
    if (rule.how == LS_HOW_TORCH) return (ls_init){LS_INIT_UNIFORM, 1.0 / sqrt(fan_in)};
    return (ls_init){LS_INIT_CONST, rule.bias};
}

ls_value lsi_add_bias(ls_step *s, ls_value y, const char *layer, int axis, bool skip, ls_init_rule rule,
                      double fan_in)
{
    ls_shape shape = ls_value_shape(y);
    int64_t channels;
    ls_value b;

    if (skip || !ls_value_ok(y)) return y;
    channels = shape.dim[axis < 0 ? shape.rank + axis : axis];
    b = lsi_variable(s, layer, "bias", LS_VAR_PARAM, LS_F32, LS_SHAPE(channels), lsi_init_bias(rule, fan_in));
    return ls_bias(y, b, axis);
}

ls_value ls_parameter_at(ls_step *s, ls_at at, const char *name, ls_shape shape, ls_init_rule init)
{
    const char *full = lsi_layer_enter(s, at, name);
    double fan_in, fan_out;
    ls_value v;

    if (full == NULL) return lsi_step_none(s);
    /* As if it were a weight (out, in, ...); a vector counts its own length both ways. */
    fan_out = shape.rank > 0 ? (double)shape.dim[0] : 1;
    fan_in = shape.rank > 1 ? (double)ls_shape_count(shape) / fan_out : fan_out;
    v = lsi_variable(s, full, NULL, LS_VAR_PARAM, LS_F32, shape, lsi_init_weight(init, fan_in, fan_out));
    lsi_layer_leave(s);
    return v;
}

/* -- patterns ---------------------------------------------------------------------------------------------
 */

bool lsi_next_word(const char **at, char *word)
{
    size_t n;

    *at += strspn(*at, " ");
    n = strcspn(*at, " ");
    if (n == 0) return false;
    snprintf(word, LSI_WORD, "%.*s", (int)n, *at);
    *at += n;
    return true;
}

bool lsi_match_any(const char *patterns, const char *name)
{
    char glob[LSI_WORD];

    while (lsi_next_word(&patterns, glob))
        if (ls_text_glob(glob, name)) return true;
    return false;
}

bool lsi_is_frozen(const ls_step *s, const char *param)
{
    return s->how.freeze != NULL && ls_globs_match(s->how.freeze, param);
}

/* -- questions --------------------------------------------------------------------------------------------
 */

int64_t ls_step_count_params(const ls_step *s, const char *patterns)
{
    int64_t sum = 0;

    for (int i = 0; i < s->n_params; i++)
        if (lsi_match_any(patterns, s->params[i].name)) sum += s->params[i].count;
    return sum;
}

int64_t ls_step_count_frozen(const ls_step *s)
{
    int64_t sum = 0;

    for (int i = 0; i < s->n_params; i++)
        if (lsi_is_frozen(s, s->params[i].name)) sum += s->params[i].count;
    return sum;
}

int ls_step_param_tensors(const ls_step *s)
{
    return s->n_params;
}
