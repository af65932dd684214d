/* machine_costs.c: what a node takes on a machine: as it was measured, by a line through what was measured,
 * or by rates. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predict/machine_internal.h"

/* A node is the same as a measured one where its FLOPs and bytes are, but for rounding to pieces. */
#define SAME_WORK 0.02
/* Relative errors where nothing measured says better (docs/predict.md): between two measured batches; beyond
 * them, at least and for each doubling; from peaks alone, which are a bound. */
#define ERROR_BETWEEN      0.03
#define ERROR_BEYOND       0.05
#define ERROR_PER_DOUBLING 0.05
#define ERROR_PEAKS        0.5

/* -- fits -------------------------------------------------------------------------------------------------
 */

void lsi_line_add(lsi_line *l, double weight, double x, double y)
{
    const double w = y > 0 ? weight / (y * y) : 0;

    l->w += w;
    l->x += w * x;
    l->y += w * y;
    l->xx += w * x * x;
    l->xy += w * x * y;
}

void lsi_line_solve(const lsi_line *l, double *a, double *b)
{
    *a = *b = 0;
    if (l->w * l->xx - l->x * l->x > 1e-12 * l->w * l->xx) {
        *b = (l->w * l->xy - l->x * l->y) / (l->w * l->xx - l->x * l->x);
        *a = (l->y - *b * l->x) / l->w;
    }
    if (*b < 0) { /* nothing depends on x */
        *b = 0;
        *a = l->y / l->w;
    } else if (*a <= 0) { /* or one x alone, of which all is taken to depend */
        *a = 0;
        *b = l->xx > 0 ? l->xy / l->xx : 0;
    }
}

void lsi_fit_line(const double *x, const double *y, int n, double *a, double *b, double *error)
{
    lsi_line l = {0};
    double sum = 0;

    for (int i = 0; i < n; i++) lsi_line_add(&l, 1, x[i], y[i]);
    lsi_line_solve(&l, a, b);
    for (int i = 0; i < n; i++) {
        const double off = y[i] > 0 ? (*a + *b * x[i]) / y[i] - 1 : 0;
        sum += off * off;
    }
    *error = n > 0 ? sqrt(sum / n) : 0;
}

/* -- which node it is -------------------------------------------------------------------------------------
 */

const char *lsi_machine_attributes(const ls_doc_node *n, char buf[LSI_ATTRIBUTES], int *pieces)
{
    const char *piece = strstr(n->attributes, " piece=");
    int own;

    *pieces = 1;
    buf[0] = '\0';
    if (strcmp(n->op, "affine") == 0) return buf; /* its factor is one over the batch */
    if (piece == NULL || sscanf(piece, " piece=%d/%d", &own, pieces) != 2 || *pieces < 1) {
        *pieces = 1;
        piece = n->attributes + strlen(n->attributes);
    }
    snprintf(buf, LSI_ATTRIBUTES, "%.*s", (int)(piece - n->attributes), n->attributes);
    return buf;
}

bool lsi_is_collective(const ls_document *d, int32_t node)
{
    for (int32_t i = 0; i < d->n_collectives; i++)
        if (d->collectives[i].start == node || d->collectives[i].end == node) return true;
    return strcmp(d->nodes[node].queue, "comm") == 0;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= SAME_WORK * fmax(fabs(a), fabs(b));
}

/* The value that goes through the points, at x: linear between the nearest two. */
static double through(const ls_machine_node *n, double x, size_t field)
{
    const ls_machine_point *p = n->point;
    int i = 0;
    double y0, y1;

    while (i + 2 < n->n_points && p[i + 1].batch < x) i++;
    y0 = *(const double *)((const char *)&p[i] + field);
    if (n->n_points == 1) return y0;
    y1 = *(const double *)((const char *)&p[i + 1] + field);
    return y0 + (y1 - y0) * (x - p[i].batch) / (p[i + 1].batch - p[i].batch);
}

/* Whether the node's work grows with the batch as that of the measured node does.  Of a single point both
 * may be: work of the batch, or of the weights. */
static bool same_work(const ls_machine_node *n, double batch, const ls_doc_node *node)
{
    const ls_machine_point *p = &n->point[0];

    if (n->n_points > 1)
        return near(through(n, batch, offsetof(ls_machine_point, flops)), node->flops) &&
               near(through(n, batch, offsetof(ls_machine_point, bytes)), node->bytes);
    if (near(p->flops, node->flops) && near(p->bytes, node->bytes)) return true;
    return p->batch > 0 && near(p->flops * batch / p->batch, node->flops) && node->bytes >= p->bytes * 0.5 &&
           node->bytes > 0;
}

static const ls_machine_node *find_node(const ls_machine *m, double batch, const ls_doc_node *node)
{
    char attributes[LSI_ATTRIBUTES];
    int pieces;

    lsi_machine_attributes(node, attributes, &pieces);
    for (int32_t i = 0; i < m->n_nodes; i++) {
        const ls_machine_node *n = &m->nodes[i];
        if (n->backward == node->backward && strcmp(n->op, node->op) == 0 &&
            strcmp(n->layer, node->layer) == 0 && strcmp(n->attributes, attributes) == 0 &&
            same_work(n, batch, node))
            return n;
    }
    return NULL;
}

/* -- costs ------------------------------------------------------------------------------------------------
 */

static const ls_machine_op *find_op(const ls_machine *m, const ls_doc_node *node)
{
    const ls_machine_op *other = NULL;

    for (int32_t i = 0; i < m->n_ops; i++) {
        if (strcmp(m->ops[i].op, node->op) != 0) continue;
        if (m->ops[i].backward == node->backward) return &m->ops[i];
        other = &m->ops[i];
    }
    return other;
}

static double bound(double work, double rate)
{
    return rate > 0 ? work / rate : 0;
}

/* Nodes like it; rates of its op, where the machine has no nodes; or the peaks, which nothing is faster than,
 * with the time that a launch takes here. */
static ls_node_cost by_rates(const ls_machine *m, const ls_doc_node *node)
{
    const ls_machine_op *op = find_op(m, node);
    double launch = INFINITY;
    ls_node_cost c = {.source = LS_COST_RATES, .op = op != NULL ? (int32_t)(op - m->ops) : -1};

    if (op != NULL && lsi_machine_like(m, node, &c)) return c;
    if (op != NULL) {
        c.seconds = op->launch_s + fmax(bound(node->flops, op->flop_s), bound(node->bytes, op->bytes_s));
        c.launch_s = op->launch_s;
        c.error = op->error;
        return c;
    }
    for (int32_t i = 0; i < m->n_ops; i++) launch = fmin(launch, m->ops[i].launch_s);
    if (m->n_ops == 0) launch = 0;
    return (ls_node_cost){.seconds =
                              launch + fmax(bound(node->flops, m->flop_s), bound(node->bytes, m->bytes_s)),
                          .launch_s = launch,
                          .error = ERROR_PEAKS,
                          .source = LS_COST_PEAKS,
                          .op = -1};
}

/* The launch is that of the op: how a node grows with the batch does not tell it from work on weights. */
static double launch_of(const ls_machine *m, const ls_doc_node *node, double seconds)
{
    const ls_machine_op *op = find_op(m, node);

    return fmin(op != NULL ? op->launch_s : 0, seconds);
}

static double fit_of(const ls_machine_node *n, double batch, double *error)
{
    double x[LS_MACHINE_POINTS], y[LS_MACHINE_POINTS], a, b;

    for (int i = 0; i < n->n_points; i++) {
        x[i] = n->point[i].batch;
        y[i] = n->point[i].seconds;
    }
    lsi_fit_line(x, y, n->n_points, &a, &b, error);
    return a + b * batch;
}

/* One point alone: the work of weights takes what it took, the work of samples grows with them. */
static ls_node_cost by_one_point(const ls_machine *m, const ls_machine_node *n, double batch,
                                 const ls_doc_node *node)
{
    const ls_machine_point *p = &n->point[0];
    const double launch = launch_of(m, node, p->seconds);
    const double more = node->flops > 0 && p->flops > 0 ? node->flops / p->flops
                        : p->bytes > 0                  ? node->bytes / p->bytes
                                                        : 1;

    if (near(more, 1))
        return (ls_node_cost){
            .seconds = p->seconds, .launch_s = launch, .source = LS_COST_MEASURED, .op = -1};
    return (ls_node_cost){.seconds = launch + (p->seconds - launch) * more,
                          .launch_s = launch,
                          .error = ERROR_BEYOND + ERROR_PER_DOUBLING * fabs(log2(batch / p->batch)),
                          .source = LS_COST_EXTRAPOLATED,
                          .op = -1};
}

ls_node_cost ls_machine_node_cost(const ls_machine *m, const ls_document *d, const ls_doc_node *node)
{
    const double batch = (double)d->batch;
    const ls_machine_node *n = find_node(m, batch, node);
    ls_node_cost c = {.op = -1};
    double fitted, first, last;

    if (n == NULL) return by_rates(m, node);
    if (n->n_points == 1) return by_one_point(m, n, batch, node);
    first = n->point[0].batch;
    last = n->point[n->n_points - 1].batch;
    fitted = fit_of(n, batch, &c.error);
    c.seconds = fmax(0, through(n, batch, offsetof(ls_machine_point, seconds)));
    c.source = LS_COST_INTERPOLATED;
    for (int i = 0; i < n->n_points; i++)
        if (n->point[i].batch == batch) c.source = LS_COST_MEASURED;
    if (c.source == LS_COST_MEASURED)
        c.error = 0;
    else if (batch >= first && batch <= last)
        c.error = fmax(c.error, n->n_points > 2 ? 0 : ERROR_BETWEEN);
    else {
        const double doublings = batch > last ? log2(batch / last) : log2(first / fmax(batch, 1));
        c.seconds = fitted;
        c.error = fmax(c.error, ERROR_BEYOND) + ERROR_PER_DOUBLING * doublings;
        c.source = LS_COST_EXTRAPOLATED;
    }
    c.launch_s = launch_of(m, node, c.seconds);
    return c;
}
