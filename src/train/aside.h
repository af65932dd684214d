/* aside.h: variables of this rank that are set aside in the host's memory while others take their place, and
 * put back. */
#ifndef LS_TRAIN_ASIDE_H
#define LS_TRAIN_ASIDE_H

#include "train/session.h"

/* Whether variable i of the session's state is one of them. */
typedef bool (*ls_aside_rule)(const ls_session *s, int i);

/* Memory for them, to be freed by the caller; NULL: there is none. */
char *ls_aside_room(const ls_session *s, ls_aside_rule wanted);
ls_status ls_aside_take(const ls_session *s, ls_aside_rule wanted, char *room, ls_err *err) LS_MUST_CHECK;
ls_status ls_aside_put_back(const ls_session *s, ls_aside_rule wanted, char *room, ls_err *err) LS_MUST_CHECK;

#endif
