/* test_document.c: what a document says of a plan is so: order, wiring, edges, memory; and its JSON reads
 * back as the same plan. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "graph/graph.h"
#include "plans_test.h"

static const ls_doc_value *value_named(const ls_document *d, const char *name)
{
    for (int32_t i = 0; i < d->n_values; i++)
        if (strcmp(d->values[i].name, name) == 0) return &d->values[i];
    return NULL;
}

static void says_what_the_plan_is(void)
{
    ls_document d;
    const ls_doc_value *x, *w, *loss;
    double flops = 0;

    small_plan_document(&(small_plan){0}, &d);
    x = value_named(&d, "x");
    w = value_named(&d, "w");
    loss = value_named(&d, "loss");
    REQUIRE(x != NULL && w != NULL && loss != NULL);
    CHECK_EQ_STR(x->kind, "input");
    CHECK_EQ_STR(w->kind, "variable");
    CHECK_EQ_STR(w->category, "weights");
    CHECK(loss->fetch && loss->node == d.n_nodes - 1 && !x->fetch);
    CHECK_EQ_INT(x->bytes, 4 * 8 * 4);
    CHECK_EQ_STR(d.nodes[0].op, "matmul");
    CHECK_EQ_STR(d.nodes[0].layer, "first");
    CHECK_EQ_STR(d.nodes[0].queue, "compute");
    CHECK_NEAR(d.nodes[0].flops, 2 * 4 * 8 * 8, 1e-9);
    for (int32_t i = 0; i < d.n_nodes; i++) flops += d.nodes[i].flops;
    CHECK_NEAR(d.flops, flops, 1e-9);
    REQUIRE(w->buffer >= 0 && x->buffer >= 0);
    CHECK_EQ_STR(d.buffers[w->buffer].kind, "variable");
    CHECK_EQ_STR(d.buffers[w->buffer].name, "w");
    CHECK_EQ_STR(d.buffers[w->buffer].home, "rank");
    CHECK_EQ_STR(d.buffers[x->buffer].kind, "arena");
    ls_document_release(&d);
}

/* A batch norm keeps something of the batch, too, but that is not what it is there for. */
static void updates_are_nodes_for_nothing_else(void)
{
    ls_document d;
    int norms = 0, updates = 0;

    small_plan_document(&(small_plan){.norm = true}, &d);
    for (int32_t i = 0; i < d.n_nodes; i++) {
        const bool update = strcmp(d.nodes[i].op, "assign") == 0;
        norms += strcmp(d.nodes[i].op, "batch_norm") == 0;
        updates += update;
        CHECK_EQ_INT(d.nodes[i].updates, update);
    }
    CHECK_EQ_INT(norms, 1);
    CHECK_EQ_INT(updates, 1);
    ls_document_release(&d);
}

static void edges_lead_forward_and_match_the_inputs(void)
{
    ls_document d;
    int32_t by_value = 0, expected = 0;

    small_plan_document(&(small_plan){.long_chain = true}, &d);
    for (int32_t i = 0; i < d.n_nodes; i++)
        for (int k = 0; k < d.nodes[i].n_in; k++) expected += d.values[d.nodes[i].in[k]].node >= 0;
    for (int32_t i = 0; i < d.n_edges; i++) {
        const ls_doc_edge *e = &d.edges[i];
        CHECK(e->from < e->to && e->to < d.n_nodes);
        if (e->value < 0) continue;
        by_value++;
        CHECK_EQ_INT(d.values[e->value].node, e->from);
    }
    CHECK_EQ_INT(by_value, expected);
    ls_document_release(&d);
}

/* No two buffers that are in use at the same time have bytes in common, and all lie in the arena. */
static void buffers_that_live_together_lie_apart(void)
{
    ls_document d;

    small_plan_document(&(small_plan){.long_chain = true}, &d);
    for (int32_t i = 0; i < d.n_buffers; i++) {
        const ls_doc_buffer *a = &d.buffers[i];
        CHECK(a->first <= a->last && a->first >= 0 && a->last < d.n_nodes);
        if (strcmp(a->kind, "variable") == 0 || a->bytes == 0) continue;
        CHECK(a->offset + a->bytes <= d.arena_bytes);
        for (int32_t k = 0; k < i; k++) {
            const ls_doc_buffer *b = &d.buffers[k];
            if (strcmp(b->kind, "variable") == 0 || b->first > a->last || a->first > b->last) continue;
            CHECK(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset || b->bytes == 0);
        }
    }
    ls_document_release(&d);
}

static void memory_over_time_has_the_planned_peak(void)
{
    ls_document d;
    double most = 0;

    small_plan_document(&(small_plan){.long_chain = true}, &d);
    for (int32_t i = 0; i < d.n_nodes; i++) {
        double by_category[LS_CAT_N], sum = 0;
        ls_document_memory_at(&d, i, by_category);
        for (int c = 0; c < LS_CAT_N; c++) sum += by_category[c];
        CHECK(sum <= (double)d.memory.total);
        if (sum > most) most = sum;
    }
    CHECK(most > 0.5 * (double)d.memory.total);
    ls_document_release(&d);
}

static void json_reads_back(void)
{
    ls_document d, back;
    ls_doc_difference o;
    ls_text text = {0};
    ls_err err = {0};
    json_t *json;

    small_plan_document(&(small_plan){.more = true}, &d);
    json = ls_document_json(&d);
    REQUIRE(json != NULL);
    REQUIRE_OK(ls_document_read(&back, json, &err), &err);
    CHECK(back.hash == d.hash && back.n_nodes == d.n_nodes && back.n_values == d.n_values);
    CHECK_EQ_INT(back.n_edges, d.n_edges);
    REQUIRE_OK(ls_document_diff(&d, &back, 10, &text, &o, &err), &err);
    CHECK(o.equal);
    CHECK_EQ_INT(back.n_buffers, d.n_buffers);
    CHECK_EQ_INT(back.buffers[1].offset, d.buffers[1].offset);
    CHECK_EQ_INT(back.n_collectives, d.n_collectives);
    for (int32_t i = 0; i < d.n_values; i++) {
        CHECK_EQ_INT(back.values[i].node, d.values[i].node);
        CHECK_EQ_INT(back.values[i].buffer, d.values[i].buffer);
    }
    json_decref(json);
    ls_text_release(&text);
    ls_document_release(&d);
    ls_document_release(&back);
}

int main(void)
{
    CHECK_RUN(says_what_the_plan_is);
    CHECK_RUN(updates_are_nodes_for_nothing_else);
    CHECK_RUN(edges_lead_forward_and_match_the_inputs);
    CHECK_RUN(buffers_that_live_together_lie_apart);
    CHECK_RUN(memory_over_time_has_the_planned_peak);
    CHECK_RUN(json_reads_back);
    return CHECK_DONE();
}
