/* rendezvous.h: machines that are joined by hand find one another.
 *
 * Machine 0 listens at the master's address, the others connect, and prove that they belong to the run
 * (link.h). Machine 0 compares what each was told about the run; when all are there, it tells them so and
 * stops listening. Whatever goes wrong ends on all machines within the time limit, and says which machine,
 * address and port. */
#ifndef LS_LAUNCH_RENDEZVOUS_H
#define LS_LAUNCH_RENDEZVOUS_H

#include "launch/launch.h"
#include "launch/link.h"
#include "launch/net.h"

typedef struct lsi_party {
    int node, nodes, ranks; /* ranks: per machine */
    lsi_link **links;       /* by machine; of machine 0: all others, else only links[0] */
    char name[64];          /* of the run, unique */
    char *hosts;            /* names of the machines, separated by commas, all different */
    char host[80];          /* this machine's among them */
    lsi_interface interface;
} lsi_party;

/* Release in any case. */
ls_status lsi_rendezvous(lsi_party *p, const ls_start *start, const ls_launch_options *o,
                         ls_err *err) LS_MUST_CHECK;
void lsi_party_release(lsi_party *p);

#endif
