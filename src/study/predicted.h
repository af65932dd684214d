/* predicted.h: what a study's points will take, written down before they are measured.
 *
 * predicted.json in the study's folder is made from a calibration by who can predict (cmd/scale_predict.c)
 * and is never made anew: a study that goes on keeps what was said, and a calibration that is another is
 * refused.  Its bytes are taken for bytes from outside. */
#ifndef LS_STUDY_PREDICTED_H
#define LS_STUDY_PREDICTED_H

#include "study/study.h"

#define LS_PREDICTED_FILE "predicted.json"
enum { LS_PREDICTED_FORMAT = 1, LS_PREDICTED_WHY = 320 };

/* Of one count.  Bands are of 90 %. */
typedef struct ls_predicted_point {
    int count, ranks;
    char why[LS_PREDICTED_WHY]; /* there is no prediction; "": there is */
    bool after;                 /* it was made when results of this count were there already */
    ls_interval step_s, rate;   /* rate: samples/s of all ranks */
    double fit, together, spread, extrapolated; /* relative errors that the band consists of */
    double waited; /* share of the step that exchanges take, in time or of the processor */
} ls_predicted_point;

typedef struct ls_predicted {
    char calibration[1024], hash[24];           /* as it was given; of what is in it */
    char machine[128], network[128];            /* what they call themselves */
    char version[64];                           /* of the program that made it */
    int64_t time;                               /* seconds since 1970: of the last prediction in it */
    ls_predicted_point of[LS_STUDY_COUNTS_MAX]; /* ascending counts */
    int n;
} ls_predicted;

/* What is in the study's folder; *there false, and n 0: nothing.  LS_DATA names the file and what helps. */
ls_status ls_predicted_load(ls_predicted *p, const ls_study *s, bool *there, ls_err *err) LS_MUST_CHECK;
/* Replaces the file as a whole. */
ls_status ls_predicted_write(const ls_predicted *p, const ls_study *s, ls_err *err) LS_MUST_CHECK;
/* The prediction for a count; NULL: there is none. */
const ls_predicted_point *ls_predicted_of(const ls_predicted *p, int count);
/* Takes a prediction in at its place; false when there is no more room. */
bool ls_predicted_add(ls_predicted *p, const ls_predicted_point *point);

/* Puts predictions beside what was measured (ls_study_judge): rows get theirs with their errors, and the
 * whole how many lie within the band.  `p` must outlive `r`. */
void ls_predicted_judge(const ls_study *s, const ls_predicted *p, ls_study_results *r);

/* What is to be said of them below the table, a sentence a line. */
void ls_predicted_advice(const ls_study *s, const ls_study_results *r, ls_text *out);

#endif
