/* share_internal.h: flows on the few links that can hold them up. */
#ifndef LS_PREDICT_SHARE_INTERNAL_H
#define LS_PREDICT_SHARE_INTERNAL_H

#include "predict/collective.h"

/* -- rates (share_rates.c) --------------------------------------------------------------------------------
 */

/* Flows that are alike: they begin and end together. */
typedef struct lsi_class {
    double cap; /* the rate of each that links of their own allow */
    double count;
    double rate;          /* of each, as it was found last */
    const int32_t *links; /* that they share with others */
    int32_t n_links;
    int32_t cap_rank; /* place of the cap among all different ones: lsi_rates_rank */
} lsi_class;

/* Memory for finding rates; of so many links and classes. */
typedef struct lsi_rates {
    double *capacity;      /* of each link */
    double *left, *weight; /* while rates are found: what is free, flows without a rate */
    int32_t *first, *n;    /* of each link: its classes in `on` */
    int32_t *on;
    int32_t *touched; /* links that have classes */
    int32_t *order;   /* classes by their caps */
    int32_t *rank_first;
    bool *fixed; /* by place in `active` */
    struct lsi_candidate *heap;
    int32_t n_touched, n_heap, n_ranks;
    ls_flow_work work;
} lsi_rates;

/* From an arena; false when memory runs out.  `most_refs`: links of all classes that are active at a time. */
bool lsi_rates_make(lsi_rates *w, ls_arena *arena, int32_t n_links, int32_t most_active, int64_t most_refs);
/* Sets cap_rank of all classes; false when memory runs out. */
bool lsi_rates_rank(lsi_rates *w, ls_arena *arena, lsi_class *classes, int64_t n);
/* Gives the active classes their rates. */
void lsi_rates_find(lsi_rates *w, lsi_class *classes, const int32_t *active, int32_t n_active);

/* -- classes (share_classes.c) ----------------------------------------------------------------------------
 */

/* When a class begins, and what it has to send. */
typedef struct lsi_task {
    double latency_s;
    double bytes; /* of each flow */
} lsi_task;

typedef struct lsi_shares {
    ls_arena *arena;
    lsi_class *classes;
    lsi_task *tasks;  /* of each class */
    double *capacity; /* of each link */
    int64_t n_refs;
    int32_t n_classes, n_links;
} lsi_shares;

/* Whether flows are merged. */
typedef enum lsi_merging {
    LSI_MERGED,   /* all begin at once: those that are alike are one class */
    LSI_APART,    /* class i is flow i; who begins when is not known, and all links of a way count */
    LSI_ONE_EACH, /* the same, and a machine sends and receives one at a time: its own link is no matter */
} lsi_merging;

/* Release in any case. */
ls_status lsi_shares_make(lsi_shares *s, const ls_network *n, int32_t nodes, const ls_flow *flows,
                          int64_t n_flows, lsi_merging merging, ls_err *err) LS_MUST_CHECK;
void lsi_shares_release(lsi_shares *s); /* frees and zeroes */

/* ls_flows_time, which also tells when the first flow had ended. */
ls_status lsi_flows_time(const ls_network *n, int32_t nodes, const ls_flow *flows, int64_t n_flows,
                         double *first_s, double *last_s, ls_flow_work *work, ls_err *err) LS_MUST_CHECK;

#endif
