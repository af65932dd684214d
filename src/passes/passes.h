/* passes.h: the passes that turn the program of one rank into a plan for a device.
 *
 * Each works on the graph in place and leaves it valid; list.h says which comes when, and check.h proves what
 * they leave.  Those that come before, from the record to the program, are in lower.h. */
#ifndef LS_PASSES_PASSES_H
#define LS_PASSES_PASSES_H

#include "passes/rules.h"

/* Marks every node dead that neither a fetch nor a variable's newest version needs. */
void ls_pass_dead(ls_graph *g);

/* The variable of which a gather takes a piece by its input `value`, as it is or in 16 bits; -1: of none. */
int32_t ls_gathered_variable(const ls_graph *g, int32_t value);

/* Expands `own_piece`: `rank` says which rank of a group this is. */
typedef int (*ls_rank_query)(const void *peers, ls_group group);
void ls_pass_own_piece(ls_graph *g, ls_rank_query rank, const void *peers);

/* Folds what `rules` want; NULL: nothing. */
void ls_pass_fuse(ls_graph *g, const ls_fusion_rule *rules, const ls_device *dev);

/* Puts nodes that `rule` takes, and that can be one node without a cycle, into regions (ops/region.c).  NULL:
 * no regions. */
void ls_pass_regions(ls_graph *g, const ls_region_rule *rule, const ls_device *dev);

/* Asks `rule` for the layouts each node wants and inserts `reorder` nodes where they differ from what is
 * there; one reorder per value and layout, however many readers it has.  NULL: all stays plain. */
void ls_pass_layout(ls_graph *g, ls_layout_rule rule, const ls_device *dev);

/* Makes one `convert` node of casts and reorders of parameters that are ready together, and one of those of
 * gradients that one update waits for. */
void ls_pass_convert(ls_graph *g);

/* Updates of variables that the ranks of a machine keep once: this one, number `rank` of `ranks`, writes a
 * piece of each.  Adds a barrier before and after every such update, with edges.  Needs: places of variables.
 */
void ls_pass_pieces(ls_graph *g, int rank, int ranks);

/* Gathers, and sums of which ranks get pieces, in memory that they use one after the other; units of weights
 * that are gathered `ahead`.  Needs: what ranks keep in pieces. */
void ls_pass_rooms(ls_graph *g, int ahead);

/* Edges that let all ranks start collectives in one order and wait for them in one, whatever their batches
 * and devices are.  Needs: all collectives, barriers and rooms, before the device has its say. */
struct ls_strategy;
void ls_pass_turns(ls_graph *g, const struct ls_strategy *how);

/* For devices whose memory the host does not share: values that nodes of the host's (`on_host`) read or make
 * lie in memory of its own, with copies on the copy queue in between (ops/transfer.c).  Needs: all
 * collectives. */
typedef bool (*ls_host_query)(const void *ctx, const ls_node *n);
void ls_pass_staging(ls_graph *g, ls_host_query on_host, const void *ctx);

/* Edges to nodes that wait for a value which they do not read (ls_node.after). */
void ls_pass_hold(ls_graph *g);

/* A variable is updated in place.  Adds the edges that keep that right: readers of an old version come before
 * the update, readers of what several ranks write after the barrier behind it.  A reader of the old version
 * that itself depends on the update is given a copy.  Needs: the barriers of ls_pass_pieces. */
void ls_pass_versions(ls_graph *g);

/* The order in which the live nodes (views left out) run: order[i] is a node number.  Follows from the edges
 * and the scheduler's own rules (schedule.c); nodes of one queue run in it one after the other. */
typedef struct ls_schedule {
    int32_t *order;
    int32_t n;
    bool
        side_by_side; /* nodes may overtake each other where their values and memory let them; the caller's */
} ls_schedule;
ls_status ls_pass_schedule(const ls_graph *g, ls_schedule *out, ls_err *err) LS_MUST_CHECK;
/* The same with views: for passes that must see producers before readers. */
ls_status ls_pass_topological(const ls_graph *g, ls_schedule *out, ls_err *err) LS_MUST_CHECK;
void ls_schedule_release(ls_schedule *s);

/* For queues that run side by side: (*out)[i][q] is how many nodes of queue q must be over before the i-th
 * scheduled node begins, by its edges.  The caller frees *out. */
ls_status ls_pass_waits(const ls_graph *g, const ls_schedule *s, int32_t (**out)[LS_QUEUE_N],
                        ls_err *err) LS_MUST_CHECK;

/* Memory: which bytes of one arena each value and each node's scratch occupy.  It begins with what the host
 * touches before and after a run, inputs and fetched values; the rest means nothing between two runs. */
#define LS_IN_STATE SIZE_MAX /* the value lives in a variable's own memory */
/* A piece of the arena while something lies in it: one value, or several one after the other. */
typedef struct ls_memory_buffer {
    size_t bytes, offset;
    int32_t first, last; /* positions in the schedule, inclusive; the end of it is one more: the host */
    int32_t rest;        /* positions behind the last at which nothing else may lie there */
    ls_category category;
    bool kept; /* the host's: it lies in the first part of the arena */
} ls_memory_buffer;
typedef struct ls_memory {
    size_t *offset;  /* per value: offset in the arena, or LS_IN_STATE (also for what lies in a buffer of a
                        collective) */
    int32_t *var;    /* per value: the variable whose memory it is in, or -1 */
    size_t *scratch; /* per scheduled node: offset of its scratch */
    ls_memory_buffer *buffers;
    int32_t n_buffers;
    int32_t *buffer_of; /* per value: which of them, or -1 */
    size_t arena_bytes;
    size_t live_bytes; /* the most of it that is in use at a time: no arena is smaller */
    size_t kept_bytes; /* of its first part, which must stay as it is between two runs */
    int32_t
        apart; /* memory rests for so many nodes at most, for nodes side by side; 0: that costs too much */
    size_t by_category[LS_CAT_N]; /* sums to arena_bytes: shares at the moment of largest use, gaps booked as
                                     activations */
    size_t kept_by_category[LS_CAT_N]; /* the same of the first part, which is in it */
} ls_memory;
/* `value_bytes` gives the size of each value in its layout; `scratch_bytes` of each scheduled node. */
ls_status ls_pass_memory(const ls_graph *g, const ls_schedule *s, const size_t *value_bytes,
                         const size_t *scratch_bytes, ls_memory *out, ls_err *err) LS_MUST_CHECK;
void ls_memory_release(ls_memory *m);

#endif
