/* list.h: the one list of passes, from what a trial has recorded to the memory of a plan.
 *
 * Each pass is a line of ls_passes (list.c) and a file whose head says what it needs and leaves.  Between the
 * phases the executor does its part: after the first it gives variables their memory, after the second it
 * asks for kernels.
 *
 * `precision` stands between split and sync_norm: there it finds what the trial wrote, op by op (a norm, a
 * loss, a product still is one node), of one part and stage, and nothing of gradients: a cast that it adds
 * gets its gradient like any other op.  As the hash of what the first phase leaves is compared between ranks,
 * it follows from record and strategy alone: what a device is good at comes in the strategy. */
#ifndef LS_PASSES_LIST_H
#define LS_PASSES_LIST_H

#include "passes/lower.h"
#include "passes/passes.h"

typedef enum ls_phase {
    LS_PHASE_PROGRAM, /* from the record to the program of one rank: the same on all devices */
    LS_PHASE_DEVICE,  /* from the program to nodes for a device, in an order */
    LS_PHASE_MEMORY   /* once every node has its kernel: where values lie */
} ls_phase;

/* What each pass left, and how long it took. */
enum { LS_PASS_NOTES = 32 };
typedef struct ls_pass_notes {
    struct ls_pass_note {
        const char *pass, *leaves;
        int32_t nodes, edges; /* live nodes and control edges, afterwards */
        double seconds;
    } of[LS_PASS_NOTES];
    int n;
} ls_pass_notes;

/* A plan on its way through the list. */
typedef struct ls_passage {
    ls_graph *g;
    const ls_strategy *how;
    ls_pass_notes *notes; /* NULL: nobody wants to know */
    const char *last;     /* the pass after which it ends; NULL: the last of the phase */

    /* For LS_PHASE_DEVICE: what the device wants (rules.h), what the host runs of its own (NULL: no staging),
     * and which of the ranks this is that update shared variables in pieces (0 ranks: none do). */
    const ls_device *dev;
    const ls_fusion_rule *fuses;
    const ls_region_rule *regions;
    ls_layout_rule layouts;
    bool converts; /* many casts and reorders at once */
    ls_host_query on_host;
    const void *host;
    int rank, ranks;
    ls_rank_query rank_of; /* of `host`: which rank this is where a group keeps pieces; NULL: it is alone */
    ls_schedule *schedule; /* left, with an order */

    /* For LS_PHASE_MEMORY: bytes of every value and of the scratch of every scheduled node. */
    const size_t *value_bytes, *scratch_bytes;
    ls_memory *memory; /* left */
} ls_passage;

typedef struct ls_pass {
    const char *name; /* its file is passes/<name>.c */
    ls_phase phase;
    bool (*skip)(const ls_passage *p); /* NULL: never */
    ls_status (*run)(ls_passage *p, ls_err *err);
    const char *needs, *leaves;
} ls_pass;
extern const ls_pass ls_passes[]; /* in the order in which they run; ended by one without a name */

/* Runs the passes of one phase; the first error ends it, and stays in the graph if it came from there. */
ls_status ls_passes_run(ls_passage *p, ls_phase phase, ls_err *err) LS_MUST_CHECK;
/* Notes what was done beside the list, such as choosing kernels. */
void ls_passes_note(const ls_passage *p, const char *what, const char *leaves, double seconds);

#endif
