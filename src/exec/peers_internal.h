/* peers_internal.h: shared by peers.c and collectives.c. */
#ifndef LS_EXEC_PEERS_INTERNAL_H
#define LS_EXEC_PEERS_INTERNAL_H

#include "exec/peers.h"

/* One exchange, and how far it is. */
typedef struct lsi_bucket {
    ls_exchange *x;
    ls_exchange_options how; /* but for the name */
    int number;
    float weight; /* of the start that waits, without overlap */
    bool waiting, under_way;
} lsi_bucket;

struct ls_peers {
    ls_comm *comm, *absent; /* the second, if any, is the peers' own */
    ls_peers_options how;
    lsi_bucket *buckets;
    int n;
    size_t cap;
    int under_way; /* exchanges that were started and are not finished */
};

#endif
