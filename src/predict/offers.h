/* offers.h: what runs on so many machines take and cost, which are within limits, and which of them are worth
 * choosing from.
 *
 * Figures have a band; choices are made by its middle. */
#ifndef LS_PREDICT_OFFERS_H
#define LS_PREDICT_OFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/interval.h"

/* a x b, whose errors have nothing to do with each other: relative ones are added as squares, above and below
 * the middle. */
ls_interval ls_interval_times(ls_interval a, ls_interval b);
ls_interval ls_interval_scaled(ls_interval a, double factor);
/* Whether the ranges have something in common: then nobody can say which is less. */
bool ls_interval_overlaps(ls_interval a, ls_interval b);

typedef enum ls_limit_kind { LS_LIMIT_BUDGET, LS_LIMIT_DEADLINE, LS_LIMIT_MEMORY, LS_LIMIT_N } ls_limit_kind;

/* The option that sets it: "--budget". */
const char *ls_limit_name(ls_limit_kind k);

/* What a configuration may be at most; 0: not limited. */
typedef struct ls_limits {
    double most[LS_LIMIT_N];
} ls_limits;

/* A configuration. */
typedef struct ls_offer {
    int row;  /* the caller's own number of it */
    int line; /* those that differ in ranks alone have the same */
    int32_t ranks, nodes;
    ls_interval seconds; /* of the run */
    ls_interval cost;    /* machines x hours x price */
    double bytes;        /* of a rank */
    unsigned beyond;     /* limits that the middle is beyond, as bits 1 << ls_limit_kind */
    unsigned may;        /* limits that the middle keeps and the upper end does not */
    bool front;          /* within all limits, and none of these is both faster and cheaper */
} ls_offer;

/* Fills cost, from seconds, machines and the price of a machine for an hour. */
void ls_offer_price(ls_offer *o, double price);
/* Fills `beyond`, `may` and `front` of all. */
void ls_offers_judge(ls_offer *o, int n, const ls_limits *limits);

/* Within all limits; the first of equals.  -1: there is none. */
int ls_offers_cheapest(const ls_offer *o, int n);
int ls_offers_fastest(const ls_offer *o, int n);
/* Of those beyond some limit, the one whose worst excess is the least, and that excess: 1.2 is 20 % more than
 * the limit.  -1: there is none. */
int ls_offers_nearest(const ls_offer *o, int n, const ls_limits *limits, double *excess);

/* Doubling the machines pays while the run then takes at most this much of the time: the share of time that
 * is saved is then at least half of the share that is added to the cost, since 1 - t >= (2 t - 1) / 2 where t
 * <= 3/4. */
#define LS_DOUBLING_PAYS 0.75

/* Where adding ranks stops paying on a line: the step from one of its offers to the next larger. */
typedef struct ls_paying {
    int last;       /* the offer up to which it pays */
    int next;       /* the first that does not; -1: all pay */
    double seconds; /* of `next` over `last` */
    double cost;
} ls_paying;

/* Of a line whose offers are in the order of their ranks; false where it has fewer than two.  Other factors
 * than two count as so many doublings of machines; on as many machines it pays to be faster.  What takes more
 * memory than there is does not count. */
bool ls_offers_pay(const ls_offer *o, int n, int line, ls_paying *out);

#endif
