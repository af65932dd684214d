/* check.c: counts and prints for check.h. */
#include "check.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A test is one program; its tally is the one thing that is global.  Ranks that are threads check, too. */
static struct {
    atomic_long checks, failures;
} tally;

static bool record(bool held, const char *file, int line)
{
    tally.checks++;
    if (!held) {
        tally.failures++;
        fprintf(stderr, "%s:%d: check failed: ", file, line);
    }
    return held;
}

bool check_true(bool held, const char *cond, const char *file, int line)
{
    if (!record(held, file, line)) fprintf(stderr, "%s\n", cond);
    return held;
}

bool check_eq_int(long long a, long long b, const char *a_text, const char *b_text, const char *file,
                  int line)
{
    bool held = a == b;
    if (!record(held, file, line)) fprintf(stderr, "%s is %lld, %s is %lld\n", a_text, a, b_text, b);
    return held;
}

bool check_eq_str(const char *a, const char *b, const char *a_text, const char *b_text, const char *file,
                  int line)
{
    bool held = a && b ? strcmp(a, b) == 0 : a == b;
    if (!record(held, file, line)) {
        fprintf(stderr, "%s is \"%s\", %s is \"%s\"\n", a_text, a ? a : "(null)", b_text, b ? b : "(null)");
    }
    return held;
}

bool check_eq_mem(const void *a, const void *b, size_t n, const char *a_text, const char *b_text,
                  const char *file, int line)
{
    const unsigned char *p = a, *q = b;
    size_t i = 0;
    while (i < n && p[i] == q[i]) i++;
    if (!record(i == n, file, line)) {
        fprintf(stderr, "%s and %s differ first at byte %zu of %zu: %02x, %02x\n", a_text, b_text, i, n, p[i],
                q[i]);
    }
    return i == n;
}

bool check_near(double a, double b, double tol, const char *a_text, const char *b_text, const char *file,
                int line)
{
    bool held = fabs(a - b) <= tol;
    if (!record(held, file, line)) {
        fprintf(stderr, "%s is %.17g, %s is %.17g: differ by %.3g, allowed %.3g\n", a_text, a, b_text, b,
                fabs(a - b), tol);
    }
    return held;
}

bool check_status(ls_status got, ls_status want, const ls_err *err, const char *call, const char *file,
                  int line)
{
    bool held = got == want;
    if (!record(held, file, line)) {
        fprintf(stderr, "%s gave status %d, expected %d: %s\n", call, (int)got, (int)want,
                err && err->text[0] ? err->text : "(no text)");
    }
    return held;
}

bool check_contains(const char *text, const char *part, const char *text_text, const char *file, int line)
{
    bool held = text && strstr(text, part);
    if (!record(held, file, line)) {
        fprintf(stderr, "%s does not contain \"%s\"; it is \"%s\"\n", text_text, part,
                text ? text : "(null)");
    }
    return held;
}

void check_run(const char *name, void (*fn)(void))
{
    long checks = tally.checks, failures = tally.failures;
    fn();
    printf("%s: %ld checks", name, tally.checks - checks);
    if (tally.failures != failures) printf(", %ld FAILED", tally.failures - failures);
    printf("\n");
    fflush(stdout);
}

bool check_is_slow_build(void)
{
#ifdef LS_SANITIZED
    return true;
#else
    return false;
#endif
}

void check_new_folder(char *out, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    const int n =
        snprintf(out, size, "%s/lockstep-test-XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");

    REQUIRE(n > 0 && (size_t)n < size);
    REQUIRE(mkdtemp(out) != NULL);
}

int check_done(void)
{
    if (!tally.checks) fprintf(stderr, "no check was made\n");
    return tally.failures || !tally.checks ? EXIT_FAILURE : EXIT_SUCCESS;
}

void check_stop(void)
{
    fprintf(stderr, "stopped: the rest depends on this\n");
    exit(EXIT_FAILURE);
}

void check_skip(const char *reason)
{
    printf("skipped: %s\n", reason);
    exit(77);
}
