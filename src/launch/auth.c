/* auth.c: keyed hashes from libsodium, and where the secret of a run comes from. */
#include "launch/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef LS_HAVE_SODIUM

#include <sodium.h>

_Static_assert(LSI_KEY_BYTES == crypto_generichash_BYTES && LSI_KEY_BYTES == crypto_generichash_KEYBYTES,
               "libsodium's usual sizes");

ls_status lsi_auth_usable(ls_err *err)
{
    if (sodium_init() < 0) return ls_fail(err, LS_UNSUPPORTED, "libsodium cannot be used on this machine");
    return LS_OK;
}

const char *lsi_auth_library(void)
{
    return sodium_version_string();
}

void lsi_auth_hash(lsi_key *out, const lsi_key *key, const char *what, const void *a, size_t n_a,
                   const void *b, size_t n_b)
{
    crypto_generichash_state s;
    /* Lengths first, so that no two inputs read the same. */
    const uint64_t lengths[] = {strlen(what), n_a, n_b};

    crypto_generichash_init(&s, key->bytes, sizeof key->bytes, sizeof out->bytes);
    crypto_generichash_update(&s, (const void *)lengths, sizeof lengths);
    crypto_generichash_update(&s, (const void *)what, strlen(what));
    crypto_generichash_update(&s, a, n_a);
    if (n_b > 0) crypto_generichash_update(&s, b, n_b);
    crypto_generichash_final(&s, out->bytes, sizeof out->bytes);
}

bool lsi_auth_equal(const lsi_key *a, const lsi_key *b)
{
    return sodium_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void lsi_auth_random(void *out, size_t n)
{
    randombytes_buf(out, n);
}

#else

/* Nothing calls the rest when this fails. */
ls_status lsi_auth_usable(ls_err *err)
{
    return ls_fail(err, LS_UNSUPPORTED,
                   "several machines need libsodium, which this build has not found (Debian: libsodium-dev)");
}

const char *lsi_auth_library(void)
{
    return "missing";
}

void lsi_auth_hash(lsi_key *out, const lsi_key *key, const char *what, const void *a, size_t n_a,
                   const void *b, size_t n_b)
{
    (void)key;
    (void)what;
    (void)a;
    (void)n_a;
    (void)b;
    (void)n_b;
    memset(out, 0, sizeof *out);
}

bool lsi_auth_equal(const lsi_key *a, const lsi_key *b)
{
    (void)a;
    (void)b;
    return false;
}

void lsi_auth_random(void *out, size_t n)
{
    memset(out, 0, n);
}

#endif

#define SECRET_MIN 16
#define SECRET_MAX 4096

static ls_status read_secret(const char *path, char *buf, size_t *n, ls_err *err)
{
    /* O_NONBLOCK: a pipe of this name must not hold up the start.  The mode is asked of what was opened, not
     * of the name, which may by then be another file's. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    ssize_t got = -1;

    if (fd < 0 || fstat(fd, &about) != 0) {
        if (fd >= 0) close(fd);
        return ls_fail(err, LS_INVALID, "LOCKSTEP_SECRET_FILE=%s: %s", path, strerror(errno));
    }
    if ((about.st_mode & 077) == 0) got = read(fd, buf, SECRET_MAX);
    close(fd);
    if ((about.st_mode & 077) != 0)
        return ls_fail(err, LS_INVALID,
                       "LOCKSTEP_SECRET_FILE=%s can be read by others (mode %03o): chmod 600 %s", path,
                       (unsigned)about.st_mode & 0777, path);
    /* The end of line that editors and `echo` add is no part of it: LOCKSTEP_SECRET has none. */
    while (got > 0 && (buf[got - 1] == '\n' || buf[got - 1] == '\r')) got--;
    if (got <= 0) return ls_fail(err, LS_INVALID, "LOCKSTEP_SECRET_FILE=%s is empty", path);
    *n = (size_t)got;
    return LS_OK;
}

ls_status lsi_auth_run_key(lsi_key *out, bool *is_secret, ls_err *err)
{
    static const lsi_key zero;
    const char *text = getenv("LOCKSTEP_SECRET"), *path = getenv("LOCKSTEP_SECRET_FILE");
    const bool by_text = text != NULL && text[0] != '\0',
               by_file = !by_text && path != NULL && path[0] != '\0';
    char buf[SECRET_MAX];
    size_t n = by_text ? strlen(text) : 0;
    ls_status st = LS_OK;

    *is_secret = by_text || by_file;
    if (by_file) LS_TRY(read_secret(path, buf, &n, err));
    /* By its length: a file may hold any bytes, also a zero at its beginning. */
    if (*is_secret && n < SECRET_MIN) {
        st = ls_fail(
            err, LS_INVALID,
            "the secret in %s has %zu bytes, at least %d keep others from guessing it; `lockstep secret new` "
            "makes one",
            by_text ? "LOCKSTEP_SECRET" : path, n, SECRET_MIN);
        goto out;
    }
    /* A key has 32 bytes, a secret any number: the hash under a key that everybody knows makes one of the
     * other. */
    lsi_auth_hash(out, &zero, "lockstep run key", by_text ? text : buf, n, NULL, 0);
out:
    return st;
}
