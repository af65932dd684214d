/* dot.c: a plan as a graph for Graphviz: a cluster for each queue, edges by value and by control. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plans/blocks_internal.h"
#include "plans/plans.h"

static void add_quoted(ls_text *t, const char *text)
{
    ls_text_add(t, "\"");
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == '"' || text[i] == '\\') ls_text_add(t, "\\");
        ls_text_add(t, "%c", (unsigned char)text[i] < 32 ? ' ' : text[i]);
    }
    ls_text_add(t, "\"");
}

static void add_lane(const ls_document *d, const lsi_blocks *b, int lane, ls_text *t)
{
    ls_text_add(t, "  subgraph cluster_%s {\n    label=\"%s\";\n", lsi_lanes[lane], lsi_lanes[lane]);
    for (int32_t i = 0; i < b->n; i++) {
        const ls_doc_node *n = &d->nodes[b->of[i].first];
        if (b->of[i].lane != lane) continue;
        ls_text_add(t, "    n%d [label=", (int)i);
        add_quoted(t, b->of[i].name);
        ls_text_add(t, ", tooltip=");
        add_quoted(t, b->of[i].first == b->of[i].last ? n->attributes : b->of[i].name);
        ls_text_add(t, ", fillcolor=\"%s\"];\n",
                    lane > 0      ? "#dcc8e6"
                    : n->waits    ? "#eab8b6"
                    : n->updates  ? "#f3d9a4"
                    : n->backward ? "#bcdcc6"
                                  : "#bdd0e9");
    }
    ls_text_add(t, "  }\n");
}

/* Whether an edge before number `e` joins the same blocks in the same way. */
static bool was_added(const ls_document *d, const lsi_blocks *b, int32_t e)
{
    const ls_doc_edge *x = &d->edges[e];

    for (int32_t i = 0; i < e; i++) {
        const ls_doc_edge *y = &d->edges[i];
        if (b->block_of[y->from] == b->block_of[x->from] && b->block_of[y->to] == b->block_of[x->to] &&
            strcmp(x->kind, y->kind) == 0)
            return true;
    }
    return false;
}

static void add_edges(const ls_document *d, const lsi_blocks *b, ls_text *t)
{
    for (int32_t i = 0; i < d->n_edges; i++) {
        const ls_doc_edge *e = &d->edges[i];
        if (b->block_of[e->from] == b->block_of[e->to] || was_added(d, b, i)) continue;
        ls_text_add(t, "  n%d -> n%d", (int)b->block_of[e->from], (int)b->block_of[e->to]);
        if (e->value < 0) ls_text_add(t, " [style=dashed, color=\"#a03030\", label=\"%s\"]", e->kind);
        ls_text_add(t, ";\n");
    }
}

void ls_document_dot(const ls_document *d, const char *title, ls_text *dot)
{
    lsi_blocks b;

    if (lsi_blocks_make(&b, d)) {
        ls_text_add(dot, "digraph plan {\n  label=");
        add_quoted(dot, title);
        ls_text_add(dot, ";\n  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n");
        for (int i = 0; i < LSI_LANES; i++) add_lane(d, &b, i, dot);
        add_edges(d, &b, dot);
        ls_text_add(dot, "}\n");
    } else {
        dot->failed = true;
    }
    lsi_blocks_release(&b);
}
