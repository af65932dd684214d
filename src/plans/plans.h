/* plans.h: documents of plans (exec/document.h) as JSON, as pictures, and compared with one another.
 *
 * A document is a description of a compiled plan that needs neither the plan nor its device: nodes with
 * attributes, values, edges, queues, buffers with their lifetimes, collectives.  All that is said about plans
 * is made from it. */
#ifndef LS_PLANS_PLANS_H
#define LS_PLANS_PLANS_H

#include <jansson.h>

#include "base/text.h"
#include "exec/document.h"

enum { LS_PLANS_FORMAT = 1 }; /* of the JSON; docs/plan-format.md has its fields */

/* One plan; NULL when memory runs out.  The caller's to json_decref. */
json_t *ls_document_json(const ls_document *d);
/* The same back.  LS_DATA names the place that is wrong.  Release in any case. */
ls_status ls_document_read(ls_document *d, const json_t *plan, ls_err *err) LS_MUST_CHECK;
/* Plan number `plan` of a file: the output of `lockstep plan --json`, or of `bench --export`.  *n_plans
 * receives how many it has.  Pipes and devices are not read.  LS_DATA names file and place.  Release in any
 * case. */
ls_status ls_document_open(ls_document *d, const char *path, int plan, int *n_plans,
                           ls_err *err) LS_MUST_CHECK;
/* The same from a text, called `path` in messages. */
ls_status ls_document_parse(ls_document *d, const char *text, size_t length, const char *path, int plan,
                            int *n_plans, ls_err *err) LS_MUST_CHECK;

/* How two plans differ.  A node is known by its layer, its op, its direction and how many such came before;
 * it has changed where attributes, types, shapes, wiring, queue or kernel have. */
typedef struct ls_doc_difference {
    int32_t added, removed, changed, moved; /* nodes; moved: in another order */
    int32_t edges;                          /* control edges that only one of them has */
    bool inputs, memory, flops, hash;
    bool equal;
} ls_doc_difference;
/* Compares, and adds what differs to `text`: at most `most` nodes one by one, the first one by name. */
ls_status ls_document_diff(const ls_document *a, const ls_document *b, int most, ls_text *text,
                           ls_doc_difference *out, ls_err *err) LS_MUST_CHECK;
/* "conv2d' of layer \"conv1\"": how messages call a node. */
const char *ls_doc_node_name(const ls_doc_node *n, char *buf, size_t size);

/* A picture: queues as lanes over time, below them memory.  Time is what was measured where the plan was
 * profiled, else an estimate from FLOPs and bytes.  Many nodes are drawn as one block per layer. */
void ls_document_svg(const ls_document *d, const char *title, ls_text *svg);
/* A graph for Graphviz: nodes or layers, edges by value and by control. */
void ls_document_dot(const ls_document *d, const char *title, ls_text *dot);

#endif
