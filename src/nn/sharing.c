/* sharing.c: which variables the ranks of a machine may keep once and update together (decision 13).
 *
 * An update of shared variables is made in pieces between two meetings, so it must be an update of shared
 * variables only, by a rule that works element by element.  A parameter may be trained by several calls of
 * ls_minimise: it is shared if that holds for each of them. */
#include "nn/nn_internal.h"

static const ls_vinfo *first_version(const ls_graph *g, int32_t var)
{
    return g->values[g->vars[var]->first];
}

/* Below some size the two meetings cost more than they save: 16 ranks on 87 KB lost 5 %, on 4.8 MB they
 * gained 8 %. */
static void propose(const ls_step *s, const lsi_call *c)
{
    int64_t bytes = 0;

    for (int i = 0; i < c->n; i++)
        bytes += ls_shape_count(first_version(s->g, c->vars[i])->shape) * (int64_t)sizeof(float);
    for (int i = 0; i < c->n && bytes >= s->how.share_from; i++)
        s->g->vars[c->vars[i]]->home = LS_HOME_MACHINE;
}

static bool all_shared(const ls_graph *g, const lsi_call *c)
{
    for (int i = 0; i < c->n; i++)
        if (g->vars[c->vars[i]]->home != LS_HOME_MACHINE || first_version(g, c->vars[i])->dtype != LS_F32)
            return false;
    return c->by_element;
}

/* Takes the proposal back where it does not hold; true where that changed something, which may matter to
 * another call. */
static bool refuse(const ls_graph *g, const lsi_call *c)
{
    bool changed = false;

    if (all_shared(g, c)) return false;
    for (int i = 0; i < c->n; i++) {
        changed = changed || g->vars[c->vars[i]]->home == LS_HOME_MACHINE;
        g->vars[c->vars[i]]->home = LS_HOME_RANK;
    }
    return changed;
}

/* What a call keeps beside its parameters, but for its counter. */
static void follow(const ls_graph *g, const lsi_call *c)
{
    for (int32_t i = c->first_node; i < c->end_node; i++)
        for (int k = 0; k < g->nodes[i]->n_out; k++) {
            const ls_vinfo *v = g->values[g->nodes[i]->out[k]];
            if (v->var >= 0 && v->dtype == LS_F32 && g->vars[v->var]->role == LS_VAR_OPTIMIZER)
                g->vars[v->var]->home = g->vars[c->vars[0]]->home;
        }
}

void lsi_allow_sharing(ls_step *s)
{
    bool changed = s->how.ranks;

    for (int i = 0; changed && i < s->n_calls; i++) propose(s, &s->calls[i]);
    while (changed) {
        changed = false;
        for (int i = 0; i < s->n_calls; i++) changed = refuse(s->g, &s->calls[i]) || changed;
    }
    for (int i = 0; s->how.ranks && i < s->n_calls; i++) follow(s->g, &s->calls[i]);
}
