/* far.h: a device that forgives nothing, for tests: memory that the host cannot see.
 *
 * What its buffers have for addresses is reserved and never mapped: whoever follows one, on the host, dies at
 * once. The device itself works on memory elsewhere, which begins as noise (not a number, where it is read as
 * floats), and never uses an address twice, so that what was freed stays dead.  Kernels are the reference's,
 * and so are the bits. Opened by its name like any other, it is not offered to users. */
#ifndef LS_BACKEND_FAR_FAR_H
#define LS_BACKEND_FAR_FAR_H

#include "backend/backend.h"

extern const ls_backend ls_backend_far;

#endif
