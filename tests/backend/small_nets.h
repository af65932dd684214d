/* small_nets.h: networks whose samples fit into a GPU's shared memory, as the CUDA backend sees them when it
 * looks for regions. */
#ifndef LS_TESTS_BACKEND_SMALL_NETS_H
#define LS_TESTS_BACKEND_SMALL_NETS_H

#include "backend/cuda/region.h"
#include "graph/graph.h"
#include "lockstep/nn.h"

typedef struct small_net {
    const char *name;
    void (*build)(ls_step *s);
} small_net;

extern const small_net small_nets[];   /* ended by one without a name */
extern const small_net small_net_deep; /* none of them */

/* A step of the network, fused for the CUDA backend, with regions for this machine.  The caller owns
 * it. */
ls_graph *small_net_graph(const small_net *net, ls_mode mode, int64_t batch, const lsi_region_machine *m);
/* Whether the node is a live region, with updates or without. */
bool small_net_is_region(const ls_node *n);
/* An H200. */
lsi_region_machine small_net_machine(bool rounded);

#endif
