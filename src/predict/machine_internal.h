/* machine_internal.h: what the files of machine.h share: members of its JSON, and fits. */
#ifndef LS_PREDICT_MACHINE_INTERNAL_H
#define LS_PREDICT_MACHINE_INTERNAL_H

#include <jansson.h>

#include "predict/machine.h"

/* -- members of a file (machine_fields.c) -----------------------------------------------------------------
 */

/* One object whose members are being read.  After a refusal all further members are read as nothing. */
typedef struct lsi_member {
    const json_t *o;
    const char *path, *list; /* "ops" with `at`; NULL: the machine itself */
    int64_t at;
    ls_arena *arena;
    ls_err *err;
    ls_status st;
} lsi_member;

ls_status lsi_member_refuse(lsi_member *m, const char *fmt, ...) LS_PRINTF(2, 3);
/* Refuses a member that none of the n names is called. */
void lsi_member_known(lsi_member *m, const char *const *names, int n);
/* `wanted`: false where it may be missing, and is then 0, false, "" or NULL. */
double lsi_member_number(lsi_member *m, const char *key, bool wanted, double least, double most);
int32_t lsi_member_whole(lsi_member *m, const char *key, bool wanted, int32_t least, int32_t most);
bool lsi_member_flag(lsi_member *m, const char *key, bool wanted);
const char *lsi_member_text(lsi_member *m, const char *key, bool wanted); /* in the arena, of one line */
const json_t *lsi_member_list(lsi_member *m, const char *key, bool wanted, size_t most);

/* -- costs (machine_costs.c) ------------------------------------------------------------------------------
 */

/* Sums over points, for the line through them. */
typedef struct lsi_line {
    double w, x, y, xx, xy;
} lsi_line;

void lsi_line_add(lsi_line *l, double weight, double x, double y);
/* y = a + b x with a, b >= 0 such that relative errors of y are least. */
void lsi_line_solve(const lsi_line *l, double *a, double *b);
/* The same through n points that count alike; *error is the root mean square of their relative errors. */
void lsi_fit_line(const double *x, const double *y, int n, double *a, double *b, double *error);
/* A node that was not measured by those of its op that were and are most like it (machine_like.c): sets
 * seconds, launch_s and error.  false: no node of its op was measured. */
bool lsi_machine_like(const ls_machine *m, const ls_doc_node *node, ls_node_cost *c);
/* Rates of all ops that the machine's nodes have (machine_rates.c); the arena's. */
ls_status lsi_machine_rate(ls_machine *m, ls_err *err) LS_MUST_CHECK;
/* Attributes without what depends on the batch or on who has which piece, into `buf`; *pieces receives among
 * how many an update is divided. */
enum { LSI_ATTRIBUTES = 512 };
const char *lsi_machine_attributes(const ls_doc_node *n, char buf[LSI_ATTRIBUTES], int *pieces);
/* Whether a node is a collective, or a part of one: its time is the network's. */
bool lsi_is_collective(const ls_document *d, int32_t node);

/* -- presets (machine_presets.c) --------------------------------------------------------------------------
 */

/* The file of that name; NULL: there is none. */
const char *lsi_machine_preset_text(const char *name);

#endif
