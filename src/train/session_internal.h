/* session_internal.h: what the files of sessions share. */
#ifndef LS_TRAIN_SESSION_INTERNAL_H
#define LS_TRAIN_SESSION_INTERNAL_H

#include "train/session.h"

/* Whether the trainer itself writes a plan's input of that name: it is no part of a batch. */
bool lsi_session_is_own_input(const char *name);
/* Whether a plan's input of that name is an optimiser's rate. */
bool lsi_session_is_rate(const char *input);

#endif
