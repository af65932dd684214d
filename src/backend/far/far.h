/* far.h: a device that forgives nothing, for tests.
 *
 * The host cannot see its memory: what its buffers have for addresses is reserved and never mapped, and
 * whoever follows one dies at once.  The device itself works on memory elsewhere, which begins as noise (not
 * a number, where it is read as floats); no address is used twice, so that what was freed stays dead.  Its
 * queues run on a thread of their own, late and in an order that is drawn from a seed (LOCKSTEP_FAR_SEED
 * where it is set; it is said).  Kernels are the reference's, and so are the bits.  Opened by its name like
 * any other, it is not offered to users.
 */
#ifndef LS_BACKEND_FAR_FAR_H
#define LS_BACKEND_FAR_FAR_H

#include "backend/backend.h"

extern const ls_backend ls_backend_far;

#endif
