/* auth.h: whether a machine that wants to join belongs to the run: the secret of a run, and keyed hashes.
 *
 * BLAKE2b with a key, from libsodium.  The one file that knows the library is auth.c. */
#ifndef LS_LAUNCH_AUTH_H
#define LS_LAUNCH_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#define LSI_KEY_BYTES 32 /* of keys, nonces and hashes */

typedef struct lsi_key {
    uint8_t bytes[LSI_KEY_BYTES];
} lsi_key;

/* LS_UNSUPPORTED when this build has no libsodium. */
ls_status lsi_auth_usable(ls_err *err) LS_MUST_CHECK;

const char *lsi_auth_library(void); /* its version */

/* The key of the run: from LOCKSTEP_SECRET, else from the file LOCKSTEP_SECRET_FILE (which only its owner may
 * be able to read), else a fixed one: `is_secret` is then false, and anybody who reaches the port can join.
 * LS_INVALID for a secret of less than 16 bytes. */
ls_status lsi_auth_run_key(lsi_key *out, bool *is_secret, ls_err *err) LS_MUST_CHECK;

/* The hash of `what`, `a` and `b` under `key`; `what` keeps hashes for one purpose from serving another.  `b`
 * may be NULL with n_b 0. */
void lsi_auth_hash(lsi_key *out, const lsi_key *key, const char *what, const void *a, size_t n_a,
                   const void *b, size_t n_b);
/* In a time that does not depend on where they differ. */
bool lsi_auth_equal(const lsi_key *a, const lsi_key *b);
void lsi_auth_random(void *out, size_t n);

#endif
