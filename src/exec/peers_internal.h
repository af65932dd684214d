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
    bool carried; /* a run starts it, and the next one waits for it */
} lsi_bucket;

/* Memory that exchanges of one group use in turn. */
typedef struct lsi_room {
    int number;
    ls_group group;
    ls_exchange_room room;
    ls_shared *memory; /* NULL: ranks are absent */
} lsi_room;

/* Where devices exchange: in their own memory (links.c). */
typedef struct lsi_vector {
    bool room; /* `number` is that of a room, which several use in turn, or of a bucket */
    int number;
    ls_group group;
    ls_collective kind; /* of a bucket */
    int64_t floats;
    ls_buffer memory;
} lsi_vector;

struct ls_peers {
    ls_comm *comm, *absent; /* the second, if any, is the peers' own */
    ls_peers_options how;
    lsi_bucket *buckets;
    int n;
    size_t cap;
    lsi_room **rooms; /* where they are: exchanges point to them */
    int n_rooms;
    size_t cap_rooms;
    int under_way; /* exchanges that were started and are not finished, */
    int carried;   /* and those of them that the next run waits for */
    /* Where devices run collectives among themselves; else `links` is NULL, and nothing else is there. */
    const ls_links *links;
    ls_device *dev;
    ls_link *link[LS_GROUPS]; /* made when the first plan needs it */
    lsi_vector **vectors;
    int n_vectors;
    size_t cap_vectors;
    ls_err links_lost;    /* why all was given up */
    char links_text[320]; /* who runs collectives, and why */
    uint64_t looked_ns;
};

#endif
