/* study_internal.h: what the files of study share: statistics, names of files, reading and comparing. */
#ifndef LS_STUDY_INTERNAL_H
#define LS_STUDY_INTERNAL_H

#include "report/sheet.h"
#include "study/compare.h"
#include "study/study.h"

#define LSI_STUDY_FORMAT 1
#define LSI_STUDY_FILE   "study.json"

/* -- statistics -------------------------------------------------------------------------------------------
 */

/* The share of a series, known by its percentiles, that is below x. */
double lsi_share_below(const ls_spread *s, double x);

/* What a point's own steps leave open of its median rate. */
ls_study_inside lsi_point_inside(const ls_study_point *p);
/* One more repeat; `a` and `b` of its two runs. */
void lsi_ratios_add(ls_study_ratios *r, double log_ratio, ls_study_inside a, ls_study_inside b);
/* The variance of one repeat's ratio as the repeats show it; NaN of less than two. */
double lsi_ratios_scatter(const ls_study_ratios *r);

/* -- files ------------------------------------------------------------------------------------------------
 */

/* The bytes of a file of at most a few MB; LS_DATA when it cannot be read.  Free *bytes in any case. */
ls_status lsi_study_read(const char *path, char **bytes, size_t *n, ls_err *err) LS_MUST_CHECK;
/* "FOLDER/name", where a path that does not fit is LS_INVALID. */
ls_status lsi_study_join(char path[LS_STUDY_PATH_MAX], const char *folder, const char *name,
                         ls_err *err) LS_MUST_CHECK;
/* "ranks-0002-repeat-03": what all files of a point begin with. */
void lsi_point_name(const ls_study *s, int count, int repeat, char name[64]);
/* Reads the file of a point.  *there: the file exists.  LS_DATA when it is no result of this point. */
ls_status lsi_point_load(const ls_study *s, int count, int repeat, ls_study_point *p, bool *there,
                         ls_err *err) LS_MUST_CHECK;
/* Whether the result `p` can be that of the point: LS_DATA with what does not fit. */
ls_status lsi_point_fits(const ls_study *s, int count, const ls_study_point *p, ls_err *err) LS_MUST_CHECK;

/* -- the command of a point -------------------------------------------------------------------------------
 */

enum { LSI_ARGS_MAX = 320, LSI_SETTINGS_MAX = 256 };

/* Whether a setting is about the batch, which a study settles: its points get lsi_batch_setting instead. */
bool lsi_sets_batch(const char *setting);
/* What the batch of every point is set to: "batch.per_rank=64". */
void lsi_batch_setting(const ls_study *s, char text[64]);
/* What a point does, whoever starts its ranks: a child of this program, or a job. */
typedef struct lsi_task {
    const char *words[LSI_ARGS_MAX]; /* "train", "mnist", ...: without ranks, threads and run directory */
    int n;
    const char *run_dir; /* NULL: a benchmark */
    bool resumed;        /* a run was stopped there, and goes on */
} lsi_task;

/* With texts of `s` and `arena`. */
ls_status lsi_point_task(lsi_task *task, const ls_study *s, int count, int repeat, ls_arena *arena,
                         ls_err *err) LS_MUST_CHECK;
/* Its command for a child: fills argv, ended by NULL. */
ls_status lsi_point_command(const ls_study *s, int count, int repeat, ls_arena *arena,
                            const char *argv[LSI_ARGS_MAX], ls_err *err) LS_MUST_CHECK;

/* The failure of a point whose command ended with the exit code `code`, with the last words of its log. */
ls_status lsi_point_failed(const char *log, int code, ls_err *err);

/* -- output -----------------------------------------------------------------------------------------------
 */

enum { LSI_COLUMNS_MAX = 15 };
typedef struct lsi_cell {
    char text[64];
    double number; /* the same for programs; NaN: the text is all there is */
} lsi_cell;

/* The table of results, as a terminal and as the report show it: names of its columns (returns how many) and
 * the cells of a row.  The efficiency of an oversubscribed point is "(0.48) no scaling". */
int lsi_columns(const ls_study *s, const ls_study_results *r, const char *names[LSI_COLUMNS_MAX]);
void lsi_cells(const ls_study *s, const ls_study_results *all, const ls_study_row *r,
               lsi_cell cells[LSI_COLUMNS_MAX]);
/* The sentences below the table: what intervals rest on, and what more repeats would be worth; each ends its
 * line. */
void lsi_advice(const ls_study *s, const ls_study_results *r, ls_text *out);

/* Every measured point, a number in every cell.  Destroy in any case. */
ls_status lsi_points_sheet(ls_sheet **out, const ls_study *s, const ls_study_points *p,
                           const ls_study_results *r, ls_err *err) LS_MUST_CHECK;
/* Writes table.csv and machine.csv: the tables of the report, a number in every cell. */
ls_status lsi_study_csv(const ls_study *s, const ls_study_results *r, ls_err *err) LS_MUST_CHECK;

/* {"lo": ..., "mid": ..., "hi": ...}; null for what is not known. */
json_t *lsi_interval_json(ls_interval i);

#endif
