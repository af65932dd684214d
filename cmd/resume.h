/* resume.h: `lockstep train --resume`: which run, and with which settings. */
#ifndef LS_CMD_RESUME_H
#define LS_CMD_RESUME_H

#include "base/text.h"
#include "cli.h"
#include "runs/run.h"

/* What `train` works with instead of its command line. */
typedef struct cli_resume {
    cli_args args;          /* with the run's path, and settings that follow from what was given */
    const char *experiment; /* what to load: the run's config.yaml */
    ls_experiment before;   /* the run's settings so far */
    bool known;             /* there are any: else the experiment that was named counts */
    bool has_checkpoint;    /* and something to go on from */
    ls_text ignored; /* what the experiment that was named says otherwise; for one of the ranks to say */
    char path[LS_PATH_MAX], config[LS_PATH_MAX + 16], trial[LS_PATH_MAX];
} cli_resume;

/* Finds the run and its settings.  An experiment that is named as well must be of the same model; where its
 * file says otherwise than the run, the run's setting holds, and `ignored` names it.  Release in any case. */
ls_status cli_resume_open(cli_resume *r, const cli_args *args, ls_err *err) LS_MUST_CHECK;
void cli_resume_release(cli_resume *r);

#endif
