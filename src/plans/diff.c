/* diff.c: how two plans differ.
 *
 * Nodes of the two are matched by layer, op and direction, and by how many such came before: a node that is
 * put in elsewhere leaves the rest matched.  What is compared of a matched pair is what a reader of the
 * listing would see, and the wiring, by the names of those who make the inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "plans/plans.h"

enum { NAME = 160 };

typedef struct side {
    const ls_document *d;
    uint64_t *key;  /* per node: what it is matched by */
    int32_t *match; /* per node: the other's, or -1 */
    struct ranked {
        uint64_t key;
        int32_t at;
    } * sorted; /* the nodes by key */
} side;

typedef struct comparison {
    side a, b;
    int left; /* nodes that are still listed one by one */
    ls_text *text;
    ls_doc_difference *out;
} comparison;

const char *ls_doc_node_name(const ls_doc_node *n, char *buf, size_t size)
{
    return ls_text_fit(buf, size, "%s%s%s%s%s", n->op, n->backward ? "'" : "",
                       n->layer[0] != '\0' ? " of layer \"" : "", n->layer, n->layer[0] != '\0' ? "\"" : "");
}

/* -- matching ---------------------------------------------------------------------------------------------
 */

static uint64_t add(uint64_t h, const char *text)
{
    return XXH3_64bits_withSeed(text, strlen(text) + 1, h);
}

static void make_keys(side *s)
{
    const int32_t n = s->d->n_nodes;

    for (int32_t i = 0; i < n; i++)
        s->key[i] = add(add(s->d->nodes[i].backward ? 1 : 0, s->d->nodes[i].op), s->d->nodes[i].layer);
    for (int32_t i = n - 1; i >= 0; i--) {
        uint64_t before = 0;
        for (int32_t k = 0; k < i; k++) before += s->key[k] == s->key[i];
        s->key[i] = XXH3_64bits_withSeed(&before, sizeof before, s->key[i]);
    }
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = ((const struct ranked *)a)->key, y = ((const struct ranked *)b)->key;

    return x < y ? -1 : x > y;
}

static void sort_keys(side *s)
{
    for (int32_t i = 0; i < s->d->n_nodes; i++) s->sorted[i] = (struct ranked){s->key[i], i};
    qsort(s->sorted, (size_t)s->d->n_nodes, sizeof *s->sorted, by_key);
}

static void match(side *a, side *b)
{
    int32_t i = 0, k = 0;

    for (int32_t j = 0; j < a->d->n_nodes; j++) a->match[j] = -1;
    for (int32_t j = 0; j < b->d->n_nodes; j++) b->match[j] = -1;
    while (i < a->d->n_nodes && k < b->d->n_nodes) {
        const struct ranked *x = &a->sorted[i], *y = &b->sorted[k];
        if (x->key == y->key) {
            a->match[x->at] = y->at;
            b->match[y->at] = x->at;
        }
        i += x->key <= y->key;
        k += y->key <= x->key;
    }
}

/* -- one pair ---------------------------------------------------------------------------------------------
 */

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool same_type(const ls_doc_value *a, const ls_doc_value *b)
{
    return same(a->dtype, b->dtype) && ls_shape_equal(a->shape, b->shape) && same(a->layout, b->layout);
}

/* Which output of its maker a value is. */
static int output_of(const ls_document *d, int32_t value)
{
    const ls_doc_node *n = &d->nodes[d->values[value].node];

    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] == value) return k;
    return -1; /* a view of one */
}

/* Whether two values are the same input, or come from matched nodes. */
static bool same_source(const comparison *c, int32_t v, int32_t w)
{
    const ls_doc_value *x = &c->a.d->values[v], *y = &c->b.d->values[w];

    if ((x->node < 0) != (y->node < 0)) return false;
    if (x->node < 0) return same(x->name, y->name); /* types of inputs are compared by themselves */
    return c->a.match[x->node] == y->node && output_of(c->a.d, v) == output_of(c->b.d, w);
}

static bool same_fetch(const ls_doc_value *x, const ls_doc_value *y)
{
    return x->fetch == y->fetch && (!x->fetch || same(x->name, y->name));
}

/* What has changed in a matched pair, or NULL. */
static const char *change(const comparison *c, const ls_doc_node *a, const ls_doc_node *b)
{
    if (!same(a->attributes, b->attributes)) return "attributes";
    if (a->n_in != b->n_in || a->n_out != b->n_out) return "the number of inputs or outputs";
    for (int k = 0; k < a->n_out; k++)
        if (!same_type(&c->a.d->values[a->out[k]], &c->b.d->values[b->out[k]])) return "type or shape";
    for (int k = 0; k < a->n_out; k++)
        if (!same_fetch(&c->a.d->values[a->out[k]], &c->b.d->values[b->out[k]])) return "what is fetched";
    for (int k = 0; k < a->n_in; k++)
        if (!same_source(c, a->in[k], b->in[k])) return "wiring";
    if (!same(a->queue, b->queue)) return "queue";
    if (!same(a->impl, b->impl)) return "kernel";
    return NULL;
}

static void describe(const ls_document *d, const ls_doc_node *n, ls_text *text)
{
    char name[NAME], shape[LS_SHAPE_TEXT];

    ls_text_add(text, "%s", ls_doc_node_name(n, name, sizeof name));
    for (int k = 0; k < n->n_out && k < 1; k++)
        ls_text_add(text, " %s %s", d->values[n->out[k]].dtype,
                    ls_shape_text(d->values[n->out[k]].shape, shape));
    if (n->attributes[0] != '\0') ls_text_add(text, " %s", n->attributes);
    if (n->impl[0] != '\0') ls_text_add(text, " [%s]", n->impl);
}

static void show_inputs(const ls_document *d, const ls_doc_node *n, ls_text *text)
{
    char name[NAME];

    ls_text_add(text, " reads");
    for (int k = 0; k < n->n_in; k++) {
        const ls_doc_value *v = &d->values[n->in[k]];
        ls_text_add(text, "%s %s", k > 0 ? "," : "",
                    v->node >= 0         ? ls_doc_node_name(&d->nodes[v->node], name, sizeof name)
                    : v->name[0] != '\0' ? v->name
                                         : "?");
    }
}

static void show_pair(comparison *c, const ls_doc_node *a, const ls_doc_node *b, const char *what)
{
    char name[NAME];

    if (c->left-- <= 0) return;
    ls_text_add(c->text, "  ~ %s: %s\n    A: ", ls_doc_node_name(a, name, sizeof name), what);
    describe(c->a.d, a, c->text);
    if (same(what, "wiring")) show_inputs(c->a.d, a, c->text);
    ls_text_add(c->text, "\n    B: ");
    describe(c->b.d, b, c->text);
    if (same(what, "wiring")) show_inputs(c->b.d, b, c->text);
    ls_text_add(c->text, "\n");
}

static void show_one(comparison *c, const ls_document *d, const ls_doc_node *n, char sign)
{
    if (c->left-- <= 0) return;
    ls_text_add(c->text, "  %c ", sign);
    describe(d, n, c->text);
    ls_text_add(c->text, "\n");
}

/* -- all nodes --------------------------------------------------------------------------------------------
 */

/* Matched nodes that would have to move for both to run in one order: all but the longest run that rises. */
static int32_t count_moved(const side *a, side *room)
{
    struct ranked *tails = room->sorted; /* of which nothing is needed any more */
    int32_t longest = 0, matched = 0;

    for (int32_t i = 0; i < a->d->n_nodes; i++) {
        int32_t lo = 0, hi = longest;
        if (a->match[i] < 0) continue;
        matched++;
        while (lo < hi) {
            const int32_t mid = (lo + hi) / 2;
            if (tails[mid].at < a->match[i])
                lo = mid + 1;
            else
                hi = mid;
        }
        tails[lo].at = a->match[i];
        if (lo == longest) longest++;
    }
    return matched - longest;
}

/* The first place in the order where the two do not run the same. */
static void show_first(comparison *c)
{
    const ls_document *a = c->a.d, *b = c->b.d;
    int32_t i = 0;

    while (i < a->n_nodes && i < b->n_nodes && c->a.match[i] == i &&
           change(c, &a->nodes[i], &b->nodes[i]) == NULL)
        i++;
    if (i == a->n_nodes && i == b->n_nodes) return;
    ls_text_add(c->text, "first difference: node %d\n    A: ", (int)i);
    if (i < a->n_nodes)
        describe(a, &a->nodes[i], c->text);
    else
        ls_text_add(c->text, "has ended");
    ls_text_add(c->text, "\n    B: ");
    if (i < b->n_nodes)
        describe(b, &b->nodes[i], c->text);
    else
        ls_text_add(c->text, "has ended");
    ls_text_add(c->text, "\n");
}

static void count_nodes(comparison *c)
{
    for (int32_t i = 0; i < c->a.d->n_nodes; i++) {
        const ls_doc_node *n = &c->a.d->nodes[i];
        const int32_t k = c->a.match[i];
        if (k < 0)
            c->out->removed++;
        else if (change(c, n, &c->b.d->nodes[k]) != NULL)
            c->out->changed++;
    }
    for (int32_t i = 0; i < c->b.d->n_nodes; i++) c->out->added += c->b.match[i] < 0;
}

static void list_nodes(comparison *c)
{
    const int32_t all = c->out->added + c->out->removed + c->out->changed;

    for (int32_t i = 0; i < c->a.d->n_nodes; i++) {
        const ls_doc_node *n = &c->a.d->nodes[i];
        const int32_t k = c->a.match[i];
        const char *what = k >= 0 ? change(c, n, &c->b.d->nodes[k]) : NULL;
        if (k < 0)
            show_one(c, c->a.d, n, '-');
        else if (what != NULL)
            show_pair(c, n, &c->b.d->nodes[k], what);
    }
    for (int32_t i = 0; i < c->b.d->n_nodes; i++)
        if (c->b.match[i] < 0) show_one(c, c->b.d, &c->b.d->nodes[i], '+');
    if (c->left < 0) ls_text_add(c->text, "  ... and %d more of %d\n", -c->left, (int)all);
}

/* -- edges, inputs, sums ----------------------------------------------------------------------------------
 */

static bool has_edge(const comparison *c, const side *here, const side *there, const ls_doc_edge *e)
{
    (void)c;
    for (int32_t i = 0; i < there->d->n_edges; i++) {
        const ls_doc_edge *x = &there->d->edges[i];
        if (x->value < 0 && x->from == here->match[e->from] && x->to == here->match[e->to] &&
            same(x->kind, e->kind))
            return true;
    }
    return false;
}

/* Edges between nodes that both have. */
static void compare_edges(comparison *c, const side *here, const side *there, char sign)
{
    for (int32_t i = 0; i < here->d->n_edges; i++) {
        const ls_doc_edge *e = &here->d->edges[i];
        char from[NAME], to[NAME];
        if (e->value >= 0 || here->match[e->from] < 0 || here->match[e->to] < 0) continue;
        if (has_edge(c, here, there, e)) continue;
        c->out->edges++;
        if (c->left-- > 0)
            ls_text_add(c->text, "  %c %s edge from %s to %s\n", sign, e->kind,
                        ls_doc_node_name(&here->d->nodes[e->from], from, sizeof from),
                        ls_doc_node_name(&here->d->nodes[e->to], to, sizeof to));
    }
}

static void compare_inputs(comparison *c, const side *here, const side *there, char sign)
{
    char shape[LS_SHAPE_TEXT];

    for (int32_t i = 0; i < here->d->n_values; i++) {
        const ls_doc_value *v = &here->d->values[i];
        bool found = same(v->kind, "node");
        for (int32_t k = 0; !found && k < there->d->n_values; k++) {
            const ls_doc_value *w = &there->d->values[k];
            found =
                same(v->kind, w->kind) && same(v->name, w->name) && same_type(v, w) && v->fetch == w->fetch;
        }
        if (found) continue;
        c->out->inputs = true;
        if (c->left-- > 0)
            ls_text_add(c->text, "  %c %s \"%s\" %s %s%s\n", sign, v->kind, v->name, v->dtype,
                        ls_shape_text(v->shape, shape), v->fetch ? ", fetched" : "");
    }
}

static void compare_bytes(comparison *c, const char *what, size_t a, size_t b)
{
    char x[32], y[32];

    if (a == b) return;
    c->out->memory = true;
    ls_text_add(c->text, "  %-12s %s -> %s", what, ls_text_bytes((double)a, x), ls_text_bytes((double)b, y));
    if (a > 0) ls_text_add(c->text, " (%+.1f %%)", 100 * ((double)b / (double)a - 1));
    ls_text_add(c->text, "\n");
}

static void compare_memory(comparison *c)
{
    const ls_plan_memory *a = &c->a.d->memory, *b = &c->b.d->memory;

    if (memcmp(a, b, sizeof *a) == 0) return;
    ls_text_add(c->text, "memory\n");
    compare_bytes(c, "weights", a->weights, b->weights);
    compare_bytes(c, "gradients", a->gradients, b->gradients);
    compare_bytes(c, "optimizer", a->optimizer, b->optimizer);
    compare_bytes(c, "activations", a->activations, b->activations);
    compare_bytes(c, "scratch", a->scratch, b->scratch);
    compare_bytes(c, "comm", a->comm, b->comm);
    compare_bytes(c, "total", a->total, b->total);
}

static void compare_sums(comparison *c)
{
    const ls_document *a = c->a.d, *b = c->b.d;
    char x[32], y[32];

    compare_memory(c);
    c->out->flops = a->flops < b->flops || a->flops > b->flops;
    if (c->out->flops)
        ls_text_add(c->text, "FLOP          %s -> %s (%+.1f %%)\n", ls_text_si(a->flops, x),
                    ls_text_si(b->flops, y), a->flops > 0 ? 100 * (b->flops / a->flops - 1) : 100.0);
    c->out->hash = a->hash != b->hash;
    if (c->out->hash)
        ls_text_add(c->text, "plan hash     %016llx -> %016llx\n", (unsigned long long)a->hash,
                    (unsigned long long)b->hash);
}

/* -- the whole --------------------------------------------------------------------------------------------
 */

static void compare(comparison *c)
{
    ls_doc_difference *o = c->out;

    show_first(c);
    count_nodes(c);
    if (o->added + o->removed + o->changed + o->moved > 0)
        ls_text_add(c->text,
                    "nodes         %d in A, %d in B: %d added, %d removed, %d changed, %d in another "
                    "order\n",
                    (int)c->a.d->n_nodes, (int)c->b.d->n_nodes, (int)o->added, (int)o->removed,
                    (int)o->changed, (int)o->moved);
    list_nodes(c);
    if (c->left < 0) c->left = 0;
    compare_edges(c, &c->a, &c->b, '-');
    compare_edges(c, &c->b, &c->a, '+');
    compare_inputs(c, &c->a, &c->b, '-');
    compare_inputs(c, &c->b, &c->a, '+');
    if (c->left < 0) ls_text_add(c->text, "  ... and %d more edges, inputs or variables\n", -c->left);
    compare_sums(c);
    o->equal = o->added + o->removed + o->changed + o->moved + o->edges == 0 && !o->inputs && !o->memory &&
               !o->flops && !o->hash;
}

static bool open_side(side *s, const ls_document *d)
{
    const size_t n = (size_t)d->n_nodes + 1;

    *s = (side){.d = d,
                .key = ls_alloc(LS_MEM_CLI, sizeof *s->key * n),
                .match = ls_alloc(LS_MEM_CLI, sizeof *s->match * n),
                .sorted = ls_alloc(LS_MEM_CLI, sizeof *s->sorted * n)};
    return s->key != NULL && s->match != NULL && s->sorted != NULL;
}

static void close_side(side *s)
{
    ls_free(s->key);
    ls_free(s->match);
    ls_free(s->sorted);
}

ls_status ls_document_diff(const ls_document *a, const ls_document *b, int most, ls_text *text,
                           ls_doc_difference *out, ls_err *err)
{
    comparison c = {.left = most, .text = text, .out = out};
    bool ok = open_side(&c.a, a);

    *out = (ls_doc_difference){0};
    ok = open_side(&c.b, b) && ok;
    if (ok) {
        make_keys(&c.a);
        make_keys(&c.b);
        sort_keys(&c.a);
        sort_keys(&c.b);
        match(&c.a, &c.b);
        out->moved = count_moved(&c.a, &c.b);
        compare(&c);
    }
    close_side(&c.a);
    close_side(&c.b);
    return ok && !text->failed ? LS_OK : ls_fail(err, LS_NOMEM, "comparing plans: no memory");
}
