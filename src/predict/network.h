/* network.h: machines and what lies between them, as data: links, how switches are connected, where ranks
 * are.
 *
 * A network is a file of format "lockstep-network" (docs/predict.md) or a preset; it says nothing of the
 * number of machines, which the question brings along.  Rates are of one direction; both directions of a link
 * are links of their own. */
#ifndef LS_PREDICT_NETWORK_H
#define LS_PREDICT_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/text.h"
#include "lockstep/status.h"

enum { LS_NETWORK_FORMAT = 1, LS_NETWORK_LEVELS = 8 };

/* What a message of n bytes takes from end to end: latency_s + n / bytes_s; and of the processor of either
 * end: message_s + n * core_s_per_byte, which is 0 where hardware moves bytes by itself.  A message between
 * machines has the latency of `node` once, and that of every switch on its way. */
typedef struct ls_link {
    double latency_s, bytes_s;
    double message_s, core_s_per_byte;
} ls_link;

typedef enum ls_network_kind {
    LS_NETWORK_FLAT,     /* one switch that never blocks */
    LS_NETWORK_FAT_TREE, /* levels of switches, each with `children` below and 1 / taper of their rate above
                          */
    LS_NETWORK_DRAGONFLY,
    LS_NETWORK_TREE /* switches one by one, each with its parent */
} ls_network_kind;

typedef struct ls_network_level {
    int32_t children; /* machines of a leaf switch; switches of a switch above */
    double taper;     /* what its children have together over what it has upwards: 1 does not block; >= 1 */
    double latency_s; /* that a switch of this level adds */
} ls_network_level;

typedef struct ls_dragonfly {
    int32_t nodes_per_router, routers_per_group, groups;
    double local_bytes_s;  /* of a link between two routers of a group, which are all connected */
    double global_bytes_s; /* of all links together between two groups */
    int32_t global_links;  /* so many are they, each at a router of its own where there are enough */
    double router_s;       /* latency of a router */
} ls_dragonfly;

/* A switch of LS_NETWORK_TREE. */
typedef struct ls_switch {
    const char *name;
    int32_t parent; /* -1: the root */
    double up_bytes_s, latency_s;
} ls_switch;

/* Where a figure of the file is from. */
typedef struct ls_network_source {
    const char *figure; /* "node.bytes_s", "topology.levels" */
    const char *text;
} ls_network_source;

typedef struct ls_network {
    ls_arena *arena;                   /* all texts and lists are its */
    const char *name, *about, *source; /* "": not said */
    ls_network_source *sources;
    int32_t n_sources;
    int32_t ranks_per_node; /* usual here; 0: not said */
    ls_link inside;         /* between ranks of a machine, one to one */
    ls_link node;           /* of a machine to its switch, shared by its ranks */
    ls_network_kind kind;
    ls_network_level level[LS_NETWORK_LEVELS]; /* from the leaves */
    int32_t n_levels;
    ls_dragonfly dragonfly;
    ls_switch *switches;
    int32_t n_switches;
    int32_t *node_switch; /* of LS_NETWORK_TREE: of every machine */
    int32_t n_nodes;      /* likewise; else 0: as many as are asked for */
    /* How well `inside` and `node` are known: the relative standard error of times computed from them, and
     * the largest number of ranks and machines that they were measured with; 0: they are not measured. */
    double error;
    /* Relative error for each doubling of the ranks, or machines, beyond that; 0: not known. */
    double error_per_doubling;
    int32_t measured_ranks, measured_nodes;
    int32_t measured_per_node; /* the most ranks of a machine likewise; 1: nothing says what `inside` takes */
} ls_network;

/* A preset, or a file when the word has a '/' or '.'.  LS_INVALID names the nearest preset, or the file, its
 * field, value and what to do.  Release in any case. */
ls_status ls_network_open(ls_network *n, const char *preset_or_path, ls_err *err) LS_MUST_CHECK;
/* From a text, called `path` in messages: an object of the format, or one that has it as "network". */
ls_status ls_network_parse(ls_network *n, const char *text, size_t length, const char *path,
                           ls_err *err) LS_MUST_CHECK;
void ls_network_release(ls_network *n); /* frees and zeroes */
/* Preset i: its name, and what it is in a line; NULL behind the last. */
const char *ls_network_preset(int i, const char **about);
/* The text of a file that is read as the same network; `to->failed` when memory runs out. */
void ls_network_write(const ls_network *n, ls_text *to);
const char *ls_network_kind_name(ls_network_kind kind); /* "flat", "fat-tree", "dragonfly", "tree" */
/* How many machines it has; 0: as many as are asked for. */
int32_t ls_network_size(const ls_network *n);

/* -- where ranks are --------------------------------------------------------------------------------------
 */

typedef enum ls_job_placement_kind {
    LS_PLACE_CONTIGUOUS, /* machines in the network's order */
    LS_PLACE_RANDOM,     /* machines drawn from all of the network's, by a seed */
    LS_PLACE_LIST
} ls_job_placement_kind;

typedef struct ls_job_placement {
    ls_job_placement_kind kind;
    uint64_t seed;
    int32_t nodes, ranks_per_node; /* ranks = nodes * ranks_per_node, but the last machine may have fewer */
    int32_t ranks;
    int32_t *node; /* of each machine of the job: its place in the network; the caller's */
} ls_job_placement;

/* Fills `node`, which has room for p->nodes.  LS_INVALID where the network has fewer machines, or a list
 * names one twice. */
ls_status ls_job_placement_fill(ls_job_placement *p, const ls_network *n, ls_err *err) LS_MUST_CHECK;

/* -- links ------------------------------------------------------------------------------------------------
 */

enum { LS_NETWORK_DEPTH = 32 /* of switches above one another */, LS_ROUTE_MAX = 2 * LS_NETWORK_DEPTH + 2 };

/* How many numbers of directed links a network has, and the rate of each; 0: there is none of that number
 * (from a router to itself).  `nodes`: machines of a network that has as many as are asked for. */
int64_t ls_network_links(const ls_network *n, int32_t nodes);
double ls_network_link_rate(const ls_network *n, int32_t nodes, int64_t link);
/* The links on the way from machine a to machine b (LS_ROUTE_MAX at most; none where a == b), and its
 * latency: the shortest way, of several equal ones the one that a and b choose by their numbers, which is the
 * same back and forth. */
int ls_network_route(const ls_network *n, int32_t nodes, int32_t a, int32_t b, int64_t *links,
                     double *latency_s);
/* The switch or router that the machine is at; all of a flat network are at 0. */
int32_t ls_network_leaf(const ls_network *n, int32_t machine);
/* Whether ways of different pairs may share a link that is slower than what their machines have together.
 * `p->node` may be NULL for contiguous machines. */
bool ls_network_blocks(const ls_network *n, const ls_job_placement *p);

#endif
