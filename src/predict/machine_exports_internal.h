/* machine_exports_internal.h: files of `bench --export` while a machine is made from them. */
#ifndef LS_PREDICT_MACHINE_EXPORTS_INTERNAL_H
#define LS_PREDICT_MACHINE_EXPORTS_INTERNAL_H

#include "predict/machine_internal.h"

/* One file. */
typedef struct lsi_export {
    const char *path, *experiment, *device;
    json_t *o;
    ls_document *plans;
    int n_plans;
    int32_t ranks, hosts, here, threads, cores;
    int32_t beside;  /* processes that took the same steps, without exchange; in `here` */
    int32_t company; /* all ranks that computed */
    double batch;    /* of a rank */
    double step_s;   /* the median one of rank 0 */
    double clocks;   /* a step without clocks over one with */
    double scale;    /* a step over one with clocks: times of its nodes are to be multiplied by it */
    double rest_s, flop_s, bytes_s;
} lsi_export;

/* A node while points are added. */
typedef struct lsi_draft {
    ls_machine_node n;
    const char *experiment;
    int plan, nth; /* how many of the same words came before in the plan */
    int seen[LS_MACHINE_POINTS];
} lsi_draft;

typedef struct lsi_maker {
    ls_machine *m;
    lsi_export *files;
    int n_files;
    int32_t fewest; /* of `company` */
    lsi_draft *drafts;
    int32_t n_drafts;
    ls_err *err;
} lsi_maker;

/* How ranks slow one another, and how steps spread (machine_company.c); nodes are there already. */
ls_status lsi_make_crowding(lsi_maker *k) LS_MUST_CHECK;
ls_status lsi_make_jitter(lsi_maker *k) LS_MUST_CHECK;
/* The relative standard error of a step as measured: that of a single measurement, by those that were made
 * several times, and of their mean; 0 where all were made once. */
double lsi_measured_error(const lsi_maker *k);

#endif
