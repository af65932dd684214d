/* list.c: the list of passes, and how one runs after the other. */
#include "passes/list.h"

#include <string.h>

#include "base/clock.h"
#include "passes/check.h"

/* -- when there is nothing to do ----------------------------------------------------------------------------
 */

static bool not_shared(const ls_passage *p)
{
    return !p->how->ranks || p->how->sharding != LS_SHARD_NOTHING || p->how->carry;
}

static bool no_shards(const ls_passage *p)
{
    return p->how->shards == 0 || p->how->part != LS_PART_GRADIENTS;
}

static bool all_kept(const ls_passage *p)
{
    return !ls_units_any(&p->how->recompute);
}

static bool no_sums(const ls_passage *p)
{
    return !p->how->ranks && p->how->shards == 0;
}

static bool unscaled(const ls_passage *p)
{
    return p->how->loss_scale == 0;
}

static bool own_norms(const ls_passage *p)
{
    return !p->how->sync_norm || p->how->part == LS_PART_UPDATE;
}

static bool nothing_carried(const ls_passage *p)
{
    return !p->how->carry;
}

static bool no_groups(const ls_passage *p)
{
    return p->rank_of == NULL;
}

static bool whole_weights(const ls_passage *p)
{
    return p->how->sharding != LS_SHARD_WEIGHTS;
}

static bool no_sharding(const ls_passage *p)
{
    return p->how->sharding == LS_SHARD_NOTHING;
}

static bool no_fusions(const ls_passage *p)
{
    return p->fuses == NULL;
}

static bool no_regions(const ls_passage *p)
{
    return p->regions == NULL;
}

static bool all_plain(const ls_passage *p)
{
    return p->layouts == NULL;
}

static bool one_by_one(const ls_passage *p)
{
    return !p->converts;
}

static bool no_pieces(const ls_passage *p)
{
    return p->ranks == 0;
}

static bool all_alone(const ls_passage *p)
{
    for (int32_t i = 0; i < p->g->n_nodes; i++)
        if (!p->g->nodes[i]->dead && (p->g->nodes[i]->op->flags & LS_OP_COLLECTIVE)) return false;
    return true;
}

static bool one_memory(const ls_passage *p)
{
    return p->on_host == NULL;
}

static bool nothing_waits(const ls_passage *p)
{
    for (int32_t i = 0; i < p->g->n_nodes; i++)
        if (p->g->nodes[i]->after >= 0 && !p->g->nodes[i]->dead) return false;
    return true;
}

/* -- passes, each called as the list calls it
 * ---------------------------------------------------------------- What fails in a graph stays there:
 * ls_passes_run asks for it. */

#define PASS(name, call)                                                                                     \
    static ls_status name(ls_passage *p, ls_err *err)                                                        \
    {                                                                                                        \
        (void)err;                                                                                           \
        call;                                                                                                \
        return LS_OK;                                                                                        \
    }

PASS(homes, ls_pass_homes(p->g, p->how))
PASS(split, ls_pass_split(p->g, p->how))
PASS(precision, ls_pass_precision(p->g, p->how))
PASS(loss_scale, ls_pass_loss_scale(p->g, p->how))
PASS(sync_norm, ls_pass_sync_norm(p->g))
PASS(shard, ls_pass_shard(p->g, p->how))
PASS(differentiate, ls_pass_differentiate(p->g, p->how))
PASS(recompute, ls_pass_recompute(p->g, p->how))
PASS(leaves, ls_pass_leaves(p->g, p->how))
PASS(parallel, ls_pass_parallel(p->g, p->how))
PASS(optimise, ls_pass_optimise(p->g, p->how))
PASS(carry, ls_pass_carry(p->g, p->how))
PASS(dead, ls_pass_dead(p->g))
PASS(own_piece, ls_pass_own_piece(p->g, p->rank_of, p->host))
PASS(fuse, ls_pass_fuse(p->g, p->fuses, p->dev))
PASS(regions, ls_pass_regions(p->g, p->regions, p->dev))
PASS(layout, ls_pass_layout(p->g, p->layouts, p->dev))
PASS(convert, ls_pass_convert(p->g))
PASS(pieces, ls_pass_pieces(p->g, p->rank, p->ranks))
PASS(rooms, ls_pass_rooms(p->g, p->how->prefetch))
PASS(turns, ls_pass_turns(p->g, p->how))
PASS(staging, ls_pass_staging(p->g, p->on_host, p->host))
PASS(hold, ls_pass_hold(p->g))
PASS(versions, ls_pass_versions(p->g))

static ls_status schedule(ls_passage *p, ls_err *err)
{
    ls_status st = ls_check_variables(p->g, err);

    if (st == LS_OK) st = ls_check_collectives(p->g, err);
    return st == LS_OK ? ls_pass_schedule(p->g, p->schedule, err) : st;
}

static ls_status memory(ls_passage *p, ls_err *err)
{
    const ls_status st = ls_pass_memory(p->g, p->schedule, p->value_bytes, p->scratch_bytes, p->memory, err);

    return st == LS_OK ? ls_check_memory(p->g, p->schedule, p->memory, p->value_bytes, p->scratch_bytes, err)
                       : st;
}

/* -- the list
 * ------------------------------------------------------------------------------------------------
 */

const ls_pass ls_passes[] = {
    {"homes", LS_PHASE_PROGRAM, not_shared, homes, "the record", "which parameters a machine may keep once"},
    {"split", LS_PHASE_PROGRAM, NULL, split, "the record", "one part and stage of the step"},
    {"precision", LS_PHASE_PROGRAM, NULL, precision, "what the trial wrote, in fp32",
     "casts, and ops that compute in fewer bits"},
    {"loss_scale", LS_PHASE_PROGRAM, unscaled, loss_scale, "losses, no gradients",
     "losses times the loss scale"},
    {"sync_norm", LS_PHASE_PROGRAM, own_norms, sync_norm, "batch norms, no gradients",
     "plain ops and sums over ranks in their places"},
    {"shard", LS_PHASE_PROGRAM, whole_weights, shard, "ops as they will be computed",
     "weights in pieces, and gathers where they are used"},
    {"differentiate", LS_PHASE_PROGRAM, NULL, differentiate, "all that losses are made of",
     "gradients in the places where they were asked for"},
    {"recompute", LS_PHASE_PROGRAM, all_kept, recompute, "gradients as nodes, units",
     "clones of what units drop, for the backward pass"},
    {"leaves", LS_PHASE_PROGRAM, no_shards, leaves, "gradients of a shard",
     "what it gives to the tree of all"},
    {"parallel", LS_PHASE_PROGRAM, no_sums, parallel, "gradients", "sums over ranks or shards, in buckets"},
    {"optimise", LS_PHASE_PROGRAM, NULL, optimise, "gradients, summed", "optimisers and pools; no macros"},
    {"carry", LS_PHASE_PROGRAM, nothing_carried, carry, "optimisers by buckets of sums",
     "the update of the run before at the beginning, this one's left to the next"},
    {"dead", LS_PHASE_PROGRAM, NULL, dead, "a program", "nodes that something needs"},
    {"own_piece", LS_PHASE_DEVICE, no_groups, own_piece, "a program, the same on all ranks",
     "which piece of a tensor is this rank's"},
    {"pieces", LS_PHASE_DEVICE, no_pieces, pieces, "homes that memory was found for",
     "this rank's piece of shared updates, between barriers"},
    {"rooms", LS_PHASE_DEVICE, no_sharding, rooms, "what ranks keep in pieces, the order of the program",
     "rooms that gathers and sums use in turn, and gathers ahead"},
    {"turns", LS_PHASE_DEVICE, all_alone, turns, "the program, barriers and rooms",
     "one order in which ranks start collectives and wait for them"},
    {"fuse", LS_PHASE_DEVICE, no_fusions, fuse, "all gradients", "fewer nodes, as the device wants them"},
    {"regions", LS_PHASE_DEVICE, no_regions, regions, "nodes as they will run, plain",
     "parts that are computed sample by sample as one node"},
    {"layout", LS_PHASE_DEVICE, all_plain, layout, "nodes as they will run", "layouts, and reorders"},
    {"convert", LS_PHASE_DEVICE, one_by_one, convert, "layouts",
     "casts and reorders of all weights, and of all gradients, as one node each"},
    {"staging", LS_PHASE_DEVICE, one_memory, staging, "all collectives", "copies between host and device"},
    {"hold", LS_PHASE_DEVICE, nothing_waits, hold, "nodes as they will run",
     "edges to nodes that must not begin early"},
    {"versions", LS_PHASE_DEVICE, NULL, versions, "all nodes, and barriers",
     "edges and copies that keep old versions right"},
    {"dead", LS_PHASE_DEVICE, NULL, dead, "nodes of the device", "nodes that something needs"},
    {"schedule", LS_PHASE_DEVICE, NULL, schedule, "all edges", "one order"},
    {"memory", LS_PHASE_MEMORY, NULL, memory, "the order, bytes of values and scratch",
     "offsets in one arena"},
    {NULL, LS_PHASE_PROGRAM, NULL, NULL, NULL, NULL},
};

void ls_passes_note(const ls_passage *p, const char *what, const char *leaves, double seconds)
{
    struct ls_pass_note *note;

    if (p->notes == NULL) return;
    LS_BUG_IF(p->notes->n == LS_PASS_NOTES);
    note = &p->notes->of[p->notes->n++];
    *note = (struct ls_pass_note){what, leaves, 0, p->g->n_edges, seconds};
    for (int32_t i = 0; i < p->g->n_nodes; i++) note->nodes += !p->g->nodes[i]->dead;
}

ls_status ls_passes_run(ls_passage *p, ls_phase phase, ls_err *err)
{
    ls_status st = ls_graph_status(p->g, err);

    if (st != LS_OK) return st;
    for (const ls_pass *pass = ls_passes; pass->name != NULL; pass++) {
        const double begun = ls_clock_seconds();
        if (pass->phase != phase) continue;
        if (pass->skip == NULL || !pass->skip(p)) {
            LS_TRY(pass->run(p, err));
            LS_TRY(ls_graph_status(p->g, err));
            ls_passes_note(p, pass->name, pass->leaves, ls_clock_seconds() - begun);
        }
        if (p->last != NULL && strcmp(p->last, pass->name) == 0) break;
    }
out:
    return st;
}

void ls_passes_lower(ls_graph *g, const ls_strategy *how)
{
    ls_passes_lower_until(g, how, NULL);
}

void ls_passes_lower_until(ls_graph *g, const ls_strategy *how, const char *last)
{
    ls_err err = {0};
    const ls_status st =
        ls_passes_run(&(ls_passage){.g = g, .how = how, .last = last}, LS_PHASE_PROGRAM, &err);

    LS_BUG_IF(st != g->err.status); /* where the caller finds it */
}
