/* plans_here.h: plans of experiments, compiled as `lockstep plan` compiles them, for ranks that are not
 * there. */
#ifndef LS_TESTS_PREDICT_PLANS_HERE_H
#define LS_TESTS_PREDICT_PLANS_HERE_H

#include "exec/document.h"

enum { PLANS_HERE_MAX = 13 };

typedef struct plans_here {
    ls_document plan[PLANS_HERE_MAX];
    int n;
    double traffic;     /* bytes that a rank sends in a step (ls_plan_traffic) */
    int64_t parameters; /* of the model */
} plans_here;

/* Of an experiment with settings ("key=value", up to NULL), `ranks` of which a machine has `here` (0: all).
 */
void plans_here_open(plans_here *p, const char *experiment, const char *const *settings, int ranks, int here);
void plans_here_release(plans_here *p);

#endif
