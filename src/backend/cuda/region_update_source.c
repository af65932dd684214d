/* region_update_source.c: writes what optimisers among a region's members do: an element of a variable
 * becomes its next version where the second kernel has made the sum that is its gradient.
 *
 * The first kernel counts the update, which nobody reads there; what follows from its number, powers of
 * betas, is computed once for a block of the second, beside what it waits for anyway. */
#include "backend/cuda/launch/optim.h"
#include "backend/cuda/region.h"

enum {
    LR = LSI_REGION_UPDATE_LR,
    SCALE = LSI_REGION_UPDATE_SCALE,
    T = LSI_REGION_UPDATE_T,
    W = LSI_REGION_UPDATE_W
};

static lsi_cuda_rule rule_of(const ls_op *op)
{
    if (op == &ls_op_sgd) return LSI_RULE_SGD;
    return op == &ls_op_adam ? LSI_RULE_ADAM : LSI_RULE_RMSPROP;
}

static bool has_powers(const ls_node *n)
{
    return n->op == &ls_op_adam;
}

/* Where a value that comes into the region, or leaves it, lies in global memory. */
static int input_of(const lsi_region *r, int32_t id)
{
    return lsi_region_value_of(r, id)->input;
}

static int output_of(const lsi_region *r, int32_t id)
{
    return r->n_in + lsi_region_value_of(r, id)->output;
}

/* The optimiser that the value is a gradient of, and its number among the weights. */
static const ls_node *reader_of(const lsi_region *r, int32_t id, int *member, int *weight)
{
    for (int i = 0; i < r->n; i++) {
        const ls_node *n = r->member[i];
        if (!ls_optim_is(n->op)) continue;
        const int all = ((const ls_optim_attr *)n->attr)->n;
        for (int k = 0; k < all; k++) {
            if (n->in[W + all + k] != id) continue;
            *member = i;
            *weight = k;
            return n;
        }
    }
    return NULL;
}

bool lsi_region_is_gradient(const lsi_region *r, int32_t id)
{
    int member, weight;

    return reader_of(r, id, &member, &weight) != NULL;
}

/* How many variables are updated by the value, and by what follows from it element by element. */
static int updated_by(const lsi_region *r, int32_t id)
{
    int sum = 0;

    for (int i = 0; i < r->n; i++) {
        const ls_node *n = r->member[i];
        const int all = ls_optim_is(n->op) ? ((const ls_optim_attr *)n->attr)->n : 0;
        for (int k = 0; k < all; k++) sum += n->in[W + all + k] == id;
        if (n->op->pw != LS_PW_NONE && n->in[0] == id) sum += updated_by(r, n->out[0]);
    }
    return sum;
}

bool lsi_region_updates_one_each(const lsi_region *r)
{
    for (int i = 0; i < r->n_values; i++)
        if (r->value[i].kind == LS_REGION_SUM && updated_by(r, r->value[i].id) > 1) return false;
    return true;
}

/* -- what is the same for all elements --------------------------------------------------------------------
 */

static void add_number(ls_text *out, const char *name, double x)
{
    ls_text_add(out, "    k.%s = %af;\n", name, (double)(float)x);
}

void lsi_region_add_numbers(ls_text *out, const lsi_region *r)
{
    for (int i = 0; i < r->n; i++) {
        const ls_optim_attr *a = r->member[i]->attr;
        if (!ls_optim_is(r->member[i]->op)) continue;
        ls_text_add(out,
                    "INLINE lsi_update_numbers numbers%d(const before &x, const float (&powers)[2])\n{\n"
                    "    lsi_update_numbers k = {};\n    k.lr = x.lr;\n    k.loss_scale = x.scale;\n"
                    "    k.c1 = powers[0];\n    k.c2 = powers[1];\n    k.nesterov = %s;\n    k.form = %d;\n",
                    i, a->nesterov ? "true" : "false", (int)a->form);
        add_number(out, "beta1", a->beta1);
        add_number(out, "beta2", a->beta2);
        add_number(out, "momentum", a->momentum);
        add_number(out, "decay", a->weight_decay);
        add_number(out, "eps", a->eps);
        add_number(out, "alpha", a->alpha);
        add_number(out, "rest1", 1 - a->beta1);
        add_number(out, "rest2", 1 - a->beta2);
        add_number(out, "rest_alpha", 1 - a->alpha);
        ls_text_add(out, "    return k;\n}\n");
    }
}

void lsi_region_add_powers(ls_text *out, const lsi_region *r)
{
    ls_text_add(out, "    LSI_SHARED float powers[%d][2];\n", r->n);
    for (int i = 0; i < r->n; i++) {
        const ls_optim_attr *a = r->member[i]->attr;
        if (!ls_optim_is(r->member[i]->op) || !has_powers(r->member[i])) continue;
        ls_text_add(out,
                    "    if (threadIdx.x == FINISH - 1) {\n"
                    "        const double t = (double)*(const int *)p.at[%d];\n"
                    "        powers[%d][0] = (float)(1 - pow(%a, t));\n"
                    "        powers[%d][1] = (float)sqrt(1 - pow(%a, t));\n    }\n",
                    output_of(r, r->member[i]->out[0]), i, a->beta1, i, a->beta2);
    }
}

/* A step of loss scale 0 is left out. */
void lsi_region_add_counts(ls_text *out, const lsi_region *r)
{
    for (int i = 0; i < r->n; i++) {
        const ls_node *n = r->member[i];
        if (!ls_optim_is(n->op)) continue;
        ls_text_add(out,
                    "    const int count%d = first == 0 ? *(const int *)p.at[%d] : 0;\n"
                    "    const bool counts%d = first == 0 && *(const float *)p.at[%d] != 0.0f;\n",
                    i, input_of(r, n->in[T]), i, input_of(r, n->in[SCALE]));
    }
}

void lsi_region_add_counted(ls_text *out, const lsi_region *r)
{
    for (int i = 0; i < r->n; i++)
        if (ls_optim_is(r->member[i]->op))
            ls_text_add(out,
                        "        if (n == 0 && ME == THREADS - 1) *(int *)p.at[%d] = count%d + (counts%d ? 1 "
                        ": 0);\n",
                        output_of(r, r->member[i]->out[0]), i, i);
}

/* -- elements ---------------------------------------------------------------------------------------------
 */

static void add_old(ls_text *out, int pointer, const char *e)
{
    ls_text_add(out, "(const float *)p.at[%d] + (%s), ", pointer, e);
}

void lsi_region_add_before(ls_text *out, const lsi_region *r, int32_t id, const char *e)
{
    int member = 0, weight = 0;
    const ls_node *n = reader_of(r, id, &member, &weight);
    const ls_optim_attr *a = n->attr;
    const int states = ls_optim_states(n->op, a);

    ls_text_add(out, "read_before(");
    add_old(out, input_of(r, n->in[W + weight]), e);
    for (int k = 0; k < 2; k++) {
        if (k < states)
            add_old(out, input_of(r, n->in[W + (2 + k) * a->n + weight]), e);
        else
            ls_text_add(out, "nullptr, ");
    }
    ls_text_add(out, "(const float *)p.at[%d], (const float *)p.at[%d])", input_of(r, n->in[LR]),
                input_of(r, n->in[SCALE]));
}

void lsi_region_add_update(ls_text *out, const lsi_region *r, int32_t id, const char *e, const char *x)
{
    int member = 0, weight = 0;
    const ls_node *n = reader_of(r, id, &member, &weight);
    const ls_optim_attr *a = n->attr;
    const int states = ls_optim_states(n->op, a);

    ls_text_add(out, "        update<%d>(numbers%d(old, powers[%d]), old, %s", (int)rule_of(n->op), member,
                member, x);
    for (int k = -1; k < 2; k++) {
        if (k < states)
            ls_text_add(out, ", (float *)p.at[%d] + (%s)", output_of(r, n->out[1 + (1 + k) * a->n + weight]),
                        e);
        else
            ls_text_add(out, ", nullptr");
    }
    ls_text_add(out, ");\n");
}
