/* predict_sensitivity.c: what would help most: the same question with one thing changed. */
#include <stdio.h>

#include "predict_table.h"

static ls_link faster(ls_link l)
{
    l.bytes_s *= 2;
    return l;
}

static ls_link nearer(ls_link l)
{
    l.latency_s /= 2;
    l.message_s /= 2;
    return l;
}

/* Switches have as much more. */
static void widen(ls_network *n)
{
    n->inside = faster(n->inside);
    n->node = faster(n->node);
    n->dragonfly.local_bytes_s *= 2;
    n->dragonfly.global_bytes_s *= 2;
}

static void shorten(ls_network *n)
{
    n->inside = nearer(n->inside);
    n->node = nearer(n->node);
    for (int i = 0; i < n->n_levels; i++) n->level[i].latency_s /= 2;
    n->dragonfly.router_s /= 2;
}

/* Many ranks are many draws: fewer steps of them are as sure. */
enum { MANY_RANKS = 4096, FEW_REPLAYS = 3 };

static bool ask(const predict_table *t, const predict_row *r, const ls_network *n, const ls_program *p,
                double *step_s)
{
    ls_predict_args a = predict_args_of(t, r);
    ls_prediction out = {0};

    if (r->ranks > MANY_RANKS) a.replays = FEW_REPLAYS;
    a.network = n;
    a.program = p;
    a.engine = (int)r->p.engine; /* differences between engines are not what is asked for */
    if (predict_answer(t, &a, &out, &(ls_err){0}) != LS_OK) return false;
    *step_s = out.mid;
    return true;
}

static void add(predict_change *out, int *n, bool ok, const char *what, const char *brief)
{
    if (!ok) return;
    snprintf(out[*n].what, sizeof out[*n].what, "%s", what);
    out[(*n)++].brief = brief;
}

int predict_sensitivity(const predict_table *t, const predict_row *r, predict_change *out)
{
    const predict_way *w = &t->way[r->way];
    const ls_program *program = &w->program;
    ls_network n = t->network;
    ls_program p = *program;
    ls_deed *deeds;
    int count = 0;

    if (n.kind != LS_NETWORK_TREE) { /* whose switches would have to be copied */
        widen(&n);
        add(out, &count, ask(t, r, &n, program, &out[count].step_s), "twice the bandwidth", "bandwidth x 2");
    }
    n = t->network;
    shorten(&n);
    add(out, &count, ask(t, r, &n, program, &out[count].step_s), "half the latency", "latency / 2");
    deeds = ls_alloc(LS_MEM_CLI, sizeof *deeds * (size_t)program->n_deeds);
    if (deeds == NULL) return count;
    for (int32_t i = 0; i < program->n_deeds; i++) {
        deeds[i] = program->deeds[i];
        deeds[i].seconds /= 2;
        for (int k = 0; k < LS_SCOPE_N; k++) deeds[i].owned_s[k] /= 2;
    }
    p.deeds = deeds;
    p.rest_s /= 2;
    add(out, &count, ask(t, r, &t->network, &p, &out[count].step_s), "twice as fast computing",
        "computing x 2");
    p = *program;
    p.own_exchange = false;
    if (program->own_exchange)
        add(out, &count, ask(t, r, &t->network, &p, &out[count].step_s), "exchanges that need no processor",
            "wire by itself");
    ls_free(deeds);
    for (int i = 0; i < PREDICT_VARIANTS; i++)
        if (w->variant_name[i][0] != '\0')
            add(out, &count, ask(t, r, &t->network, &w->variant[i], &out[count].step_s), w->variant_name[i],
                w->variant_brief[i]);
    return count;
}
