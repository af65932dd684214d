/* machine_like.c: what a node takes that was not measured: as those of its op that were and are most like it.
 *
 * One rate for all nodes of an op is far from most of them: a convolution of 3x3 goes another way than one of
 * 5x5, and one of maps of 2x2 reaches a tenth of what large maps do.  So time is a line over work, through
 * the measured nodes of the op in either direction, which count the less the more they differ; over FLOPs or
 * bytes, whichever of the two is nearer to them. */
#include <math.h>
#include <string.h>

#include "predict/machine_internal.h"

/* How unlike two nodes are: the root of the sum of squares of ln(ratio) of FLOPs and of bytes, and of these.
 * They, and what an error grows by with the distance to the nearest node, are such that models are predicted
 * well, and as well as they say, by costs of other models (docs/predict.md, what a node takes). */
#define OTHER_INTENSITY    2.0 /* square of ln(ratio) of FLOPs to bytes, times this */
#define OTHER_ATTRIBUTE    6.0 /* for each attribute */
#define OTHER_DIRECTION    0.25
#define ERROR_PER_DISTANCE 0.2
#define ERROR_ALONE        0.3 /* of fewer than three points: no line is known by them */
#define ERROR_LEAST        0.05
#define ERROR_MOST         2.0

/* -- how unlike nodes are ---------------------------------------------------------------------------------
 */

/* Sizes of maps and padding are in the work; what dropout draws from, and how often, costs nothing. */
static bool counts(const char *word, size_t key)
{
    static const char *const free_of_charge[] = {"in", "pad", "stream", "p"};

    for (size_t i = 0; i < sizeof free_of_charge / sizeof *free_of_charge; i++)
        if (strlen(free_of_charge[i]) == key && strncmp(word, free_of_charge[i], key) == 0) return false;
    return true;
}

/* The word of `text` that begins like this one, up to its '='; NULL: none. */
static const char *word_of(const char *text, const char *key, size_t length)
{
    for (const char *w = text; *w != '\0'; w += strcspn(w, " ")) {
        w += strspn(w, " ");
        if (strncmp(w, key, length) == 0 && strcspn(w, " =") == length) return w;
    }
    return NULL;
}

/* Attributes of `a` that `b` has not; and if `values`, that it has with another value. */
static int missing(const char *a, const char *b, bool values)
{
    int n = 0;

    for (const char *w = a; *w != '\0'; w += strcspn(w, " ")) {
        const char *other;
        size_t key, all;
        w += strspn(w, " ");
        key = strcspn(w, " =");
        all = strcspn(w, " ");
        if (all == 0 || !counts(w, key)) continue;
        other = word_of(b, w, key);
        if (other == NULL)
            n++;
        else
            n += values && (strcspn(other, " ") != all || strncmp(other, w, all) != 0);
    }
    return n;
}

static double squared_ratio(double a, double b)
{
    const double r = a > 0 && b > 0 ? log(a / b) : 0;

    return r * r;
}

/* What is the same for all points of a measured node. */
static double unlike_in_kind(const ls_machine_node *n, const ls_doc_node *node, const char *attributes)
{
    return OTHER_ATTRIBUTE *
               (missing(attributes, n->attributes, true) + missing(n->attributes, attributes, false)) +
           OTHER_DIRECTION * (n->backward != node->backward);
}

static double unlike_in_work(const ls_machine_point *p, const ls_doc_node *node)
{
    double d = squared_ratio(p->flops, node->flops) + squared_ratio(p->bytes, node->bytes);

    if (p->flops > 0 && p->bytes > 0 && node->flops > 0 && node->bytes > 0)
        d += OTHER_INTENSITY * squared_ratio(p->flops / p->bytes, node->flops / node->bytes);
    return d;
}

/* -- lines ------------------------------------------------------------------------------------------------
 */

/* A line over one kind of work, and how far points are from it. */
typedef struct fit {
    lsi_line sums;
    double a, b;
    double weight, off, off2; /* sums of ln(line / measured), and of its square */
} fit;

typedef struct like {
    const ls_machine *m;
    const ls_doc_node *node;
    char attributes[LSI_ATTRIBUTES];
    int points;
    double nearest; /* the square of the least distance */
    fit flops, bytes;
} like;

typedef void visit(like *l, const ls_machine_point *p, double distance);

static void each_point(like *l, visit *f)
{
    for (int32_t i = 0; i < l->m->n_nodes; i++) {
        const ls_machine_node *n = &l->m->nodes[i];
        double kind;
        if (strcmp(n->op, l->node->op) != 0) continue;
        kind = unlike_in_kind(n, l->node, l->attributes);
        for (int k = 0; k < n->n_points; k++)
            if (n->point[k].seconds > 0) f(l, &n->point[k], kind + unlike_in_work(&n->point[k], l->node));
    }
}

static void find_nearest(like *l, const ls_machine_point *p, double distance)
{
    (void)p;
    l->points++;
    l->nearest = fmin(l->nearest, distance);
}

/* The nearest counts one; what is farther never nothing, so that there is a line where points are few. */
static double weight_of(const like *l, double distance)
{
    return exp(-(distance - l->nearest) / 2) + 1e-9;
}

static void add_point(like *l, const ls_machine_point *p, double distance)
{
    const double w = weight_of(l, distance);

    lsi_line_add(&l->flops.sums, w, p->flops, p->seconds);
    lsi_line_add(&l->bytes.sums, w, p->bytes, p->seconds);
}

static void add_off(fit *f, double weight, double work, double seconds)
{
    const double at = f->a + f->b * work;
    const double off = at > 0 ? log(at / seconds) : ERROR_MOST;

    f->weight += weight;
    f->off += weight * off;
    f->off2 += weight * off * off;
}

static void find_off(like *l, const ls_machine_point *p, double distance)
{
    const double w = weight_of(l, distance);

    add_off(&l->flops, w, p->flops, p->seconds);
    add_off(&l->bytes, w, p->bytes, p->seconds);
}

/* A line of least relative errors lies nearer to those that take little; on the average it shall meet all. */
static double off_by(const fit *f)
{
    return f->off / f->weight;
}

static double scatter(const fit *f)
{
    return sqrt(fmax(0, f->off2 / f->weight - off_by(f) * off_by(f)));
}

bool lsi_machine_like(const ls_machine *m, const ls_doc_node *node, ls_node_cost *c)
{
    like l = {.m = m, .node = node, .nearest = INFINITY};
    const fit *best;
    int pieces;

    lsi_machine_attributes(node, l.attributes, &pieces);
    each_point(&l, find_nearest);
    if (isinf(l.nearest)) return false;
    each_point(&l, add_point);
    lsi_line_solve(&l.flops.sums, &l.flops.a, &l.flops.b);
    lsi_line_solve(&l.bytes.sums, &l.bytes.a, &l.bytes.b);
    each_point(&l, find_off);
    best =
        node->flops > 0 && (node->bytes <= 0 || scatter(&l.flops) < scatter(&l.bytes)) ? &l.flops : &l.bytes;
    c->seconds = (best->a + best->b * (best == &l.flops ? node->flops : node->bytes)) * exp(-off_by(best));
    c->launch_s = fmin(best->a, c->seconds);
    c->error = hypot(scatter(best), ERROR_PER_DISTANCE * sqrt(l.nearest));
    c->error = fmin(fmax(c->error, l.points < 3 ? ERROR_ALONE : ERROR_LEAST), ERROR_MOST);
    return true;
}
