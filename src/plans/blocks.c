/* blocks.c: nodes as blocks on a line of time. */
#include "plans/blocks_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

enum { MOST_NODES = 150 }; /* that are drawn one by one */

const char *const lsi_lanes[LSI_LANES] = {"compute", "comm", "copy", "host"};

/* A machine that nobody has, for plans that were not measured: widths are to be compared with one another.
 * The third is what a node costs in any case. */
#define FLOP_PER_S  5e10
#define BYTES_PER_S 1e10
#define NODE_S      2e-6

static double estimate(const ls_doc_node *n)
{
    const double compute = n->flops / FLOP_PER_S, move = n->bytes / BYTES_PER_S;

    return NODE_S + (compute > move ? compute : move);
}

static int lane_of(const ls_doc_node *n)
{
    for (int i = 0; i < LSI_LANES; i++)
        if (strcmp(lsi_lanes[i], n->queue) == 0) return i;
    return 0;
}

/* The node at which what `i` begins is over: of an exchange its wait. */
static int32_t over_at(const ls_document *d, int32_t i)
{
    for (int32_t k = 0; k < d->n_collectives; k++)
        if (d->collectives[k].start == i) return d->collectives[k].end;
    return i;
}

static void set_times(lsi_blocks *b, const ls_document *d)
{
    double now = 0;

    for (int32_t i = 0; i < d->n_nodes; i++) b->measured = b->measured || d->nodes[i].seconds > 0;
    for (int32_t i = 0; i < d->n_nodes; i++) {
        const ls_doc_node *n = &d->nodes[i];
        b->begins[i] = now;
        /* What is on its way costs the compute queue its start alone, and its wait what is left of it. */
        now += b->measured ? n->seconds + n->progress_s : n->waits || lane_of(n) != 0 ? NODE_S : estimate(n);
        b->ends[i] = now;
    }
    for (int32_t i = 0; i < d->n_nodes; i++)
        if (lane_of(&d->nodes[i]) != 0) /* what the next run waits for is on its way when this one ends */
            b->ends[i] = over_at(d, i) < i ? now : b->ends[over_at(d, i)];
    b->seconds = now;
}

/* Layers are grouped by the first parts of their names: "layer1.0.conv1" belongs to "layer1.0". */
static size_t group_length(const char *layer, bool coarse)
{
    const char *dot = strchr(layer, '.');

    if (coarse) return strcspn(layer, "./");
    return dot != NULL && strchr(dot + 1, '.') != NULL ? (size_t)(strchr(dot + 1, '.') - layer)
                                                       : strlen(layer);
}

static bool same_group(const ls_doc_node *a, const ls_doc_node *b, bool coarse)
{
    const size_t n = group_length(a->layer, coarse);

    return a->backward == b->backward && a->updates == b->updates && n == group_length(b->layer, coarse) &&
           strncmp(a->layer, b->layer, n) == 0 && !a->waits && !b->waits;
}

static void name_node(lsi_block *x, const ls_document *d)
{
    const ls_doc_node *n = &d->nodes[x->first];
    char bytes[32], layer[61];

    ls_text_fit(x->name, sizeof x->name, "%s%s%s%s", n->op, n->backward ? "'" : "",
                n->layer[0] != '\0' ? " " : "", ls_text_fit(layer, sizeof layer, "%s", n->layer));
    for (int32_t k = 0; k < d->n_collectives; k++)
        if (d->collectives[k].start == x->first && d->collectives[k].bucket >= 0)
            snprintf(x->name, sizeof x->name, "bucket %d: %s", (int)d->collectives[k].bucket,
                     ls_text_bytes((double)d->collectives[k].bytes, bytes));
}

static void name_block(lsi_block *x, const ls_document *d, bool coarse)
{
    const ls_doc_node *n = &d->nodes[x->first];
    const size_t length = group_length(n->layer, coarse);

    if (x->first == x->last)
        name_node(x, d);
    else if (length > 0)
        ls_text_fit(x->name, sizeof x->name, "%.*s%s", (int)length, n->layer, n->backward ? "'" : "");
    else
        snprintf(x->name, sizeof x->name, "%s%s", n->updates ? "update" : "other", n->backward ? "'" : "");
}

/* Nodes of other queues lie between those of a group without ending it: `open` is each lane's last block. */
static void make_blocks(lsi_blocks *b, const ls_document *d, bool coarse)
{
    int32_t open[LSI_LANES] = {-1, -1, -1, -1};

    b->n = 0;
    for (int32_t i = 0; i < d->n_nodes; i++) {
        const int lane = lane_of(&d->nodes[i]);
        lsi_block *last = open[lane] >= 0 ? &b->of[open[lane]] : NULL;
        if (b->grouped && lane == 0 && last != NULL &&
            same_group(&d->nodes[last->first], &d->nodes[i], coarse)) {
            last->last = i;
            last->end = b->ends[i];
        } else {
            open[lane] = b->n++;
            b->of[open[lane]] =
                (lsi_block){.first = i, .last = i, .lane = lane, .begin = b->begins[i], .end = b->ends[i]};
        }
        b->block_of[i] = open[lane];
    }
    for (int32_t i = 0; i < b->n; i++) name_block(&b->of[i], d, coarse);
}

/* Each block in the first row of its lane that is free when it begins. */
static void set_rows(lsi_blocks *b)
{
    double free_from[LSI_LANES][LSI_ROWS] = {{0}};

    for (int32_t i = 0; i < b->n; i++) {
        lsi_block *x = &b->of[i];
        while (x->lane > 0 && x->row + 1 < LSI_ROWS && free_from[x->lane][x->row] > x->begin) x->row++;
        free_from[x->lane][x->row] = x->end;
        if (x->row >= b->rows[x->lane]) b->rows[x->lane] = x->row + 1;
    }
}

bool lsi_blocks_make(lsi_blocks *b, const ls_document *d)
{
    const size_t n = (size_t)d->n_nodes + 1;

    *b = (lsi_blocks){.of = ls_alloc(LS_MEM_CLI, sizeof *b->of * n),
                      .block_of = ls_alloc(LS_MEM_CLI, sizeof *b->block_of * n),
                      .begins = ls_alloc(LS_MEM_CLI, sizeof *b->begins * n),
                      .ends = ls_alloc(LS_MEM_CLI, sizeof *b->ends * n),
                      .grouped = d->n_nodes > MOST_NODES};
    if (b->of == NULL || b->block_of == NULL || b->begins == NULL || b->ends == NULL) return false;
    set_times(b, d);
    make_blocks(b, d, false);
    if (b->n > 2 * MOST_NODES) make_blocks(b, d, true);
    set_rows(b);
    return true;
}

void lsi_blocks_release(lsi_blocks *b)
{
    ls_free(b->of);
    ls_free(b->block_of);
    ls_free(b->begins);
    ls_free(b->ends);
    *b = (lsi_blocks){0};
}
