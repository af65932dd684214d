/* ref.h: the reference backend: every op by its readable kernel, in double precision, on one thread. */
#ifndef LS_BACKEND_REF_REF_H
#define LS_BACKEND_REF_REF_H

#include "backend/backend.h"

extern const ls_backend ls_backend_ref;

#endif
