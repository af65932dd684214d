/* share_internal.h: flows on the few links that can hold them up. */
#ifndef LS_PREDICT_SHARE_INTERNAL_H
#define LS_PREDICT_SHARE_INTERNAL_H

#include "predict/collective.h"

/* Flows that are alike: they begin and end together. */
typedef struct lsi_class {
    double latency_s; /* they begin then */
    double bytes;     /* of each, that are left */
    double cap;       /* the rate of each that links of their own allow */
    double count;
    int64_t first; /* of its links in lsi_shares.of_class */
    int32_t n_links;
} lsi_class;

/* A link that several classes share. */
typedef struct lsi_shared_link {
    double rate;
    int64_t first; /* of its classes in lsi_shares.of_link */
    int32_t n_classes;
} lsi_shared_link;

typedef struct lsi_shares {
    ls_arena *arena;
    lsi_class *classes;
    lsi_shared_link *links;
    int32_t *of_class, *of_link;
    int32_t n_classes, n_links;
} lsi_shares;

/* share_classes.c.  Release in any case. */
ls_status lsi_shares_make(lsi_shares *s, const ls_network *n, int32_t nodes, const ls_flow *flows,
                          int64_t n_flows, ls_err *err) LS_MUST_CHECK;
void lsi_shares_release(lsi_shares *s); /* frees and zeroes */

#endif
