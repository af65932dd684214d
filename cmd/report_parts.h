/* report_parts.h: parts of reports that several commands print, as text and as JSON. */
#ifndef LS_CMD_REPORT_PARTS_H
#define LS_CMD_REPORT_PARTS_H

#include "base/stats.h"
#include "cli.h"

/* null for what is not finite. */
json_t *report_number_json(double x);
/* {"p16": ..., "p50": ..., "p84": ...} */
json_t *report_spread_json(ls_spread s);
/* {network: count, ..., "total": count} */
json_t *report_params_json(const cli_experiment *x);
void report_params_text(const cli_experiment *x);
json_t *report_memory_json(ls_plan_memory m);
void report_memory_text(ls_plan_memory m);
/* The model's settings with their values. */
void report_settings(const ls_experiment *x, bool json);

#endif
