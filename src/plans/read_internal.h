/* read_internal.h: a document while it is read from JSON.
 *
 * What a file says is believed only after it was looked at: every member has its type and its range
 * (fields.c), and what lists say of one another holds (read_check.c).  The first thing that is wrong is told,
 * with its place and its value. */
#ifndef LS_PLANS_READ_INTERNAL_H
#define LS_PLANS_READ_INTERNAL_H

#include <jansson.h>

#include "base/json.h"
#include "exec/document.h"

/* One object of a list, or the plan itself, whose members are being read. */
typedef struct lsi_item {
    ls_document *d;
    const json_t *o;
    const char *list; /* "node", "edge", ...; "plan": the plan itself */
    int64_t at;       /* its place in the list; -1: it is in none */
    ls_err *err;
    ls_status st; /* LS_OK until something was wrong; further members are then read as nothing */
} lsi_item;

/* "edge 3: ...; write the file anew ...". */
ls_status lsi_item_refuse(lsi_item *it, const char *fmt, ...) LS_PRINTF(2, 3);

/* Members that must be there.  0, "" or false after a refusal. */
int64_t lsi_item_whole(lsi_item *it, const char *key, int64_t least, int64_t most);
double lsi_item_number(lsi_item *it, const char *key); /* finite, not negative */
bool lsi_item_flag(lsi_item *it, const char *key);
/* In the document's arena.  Nothing in it that moves a cursor, ends a line or turns the direction of writing.
 */
const char *lsi_item_text(lsi_item *it, const char *key);
/* One of n names, as which it is returned. */
const char *lsi_item_name(lsi_item *it, const char *key, const char *const *names, int n);
/* NULL after a refusal. */
const json_t *lsi_item_list(lsi_item *it, const char *key);

/* What must hold between the lists of a document that is read otherwise: nodes read what was made before,
 * edges lead forward, and no two buffers that are in use at the same time have bytes in common. */
ls_status lsi_document_check(ls_document *d, ls_err *err) LS_MUST_CHECK;

#endif
