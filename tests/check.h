/* check.h: assertions for tests.
 *
 * A check is never compiled out, prints both values with file and line when it fails, and lets the test go
 * on; REQUIRE stops the program, for conditions without which the rest makes no sense.  main() calls
 * CHECK_RUN for each test function and returns CHECK_DONE(), which fails when a check failed or when none was
 * made. Checks are made by the main thread only. */
#ifndef LS_TESTS_CHECK_H
#define LS_TESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/status.h"

#define CHECK(cond)           check_true((cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ_INT(a, b)    check_eq_int((long long)(a), (long long)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_EQ_STR(a, b)    check_eq_str((a), (b), #a, #b, __FILE__, __LINE__)
#define CHECK_EQ_MEM(a, b, n) check_eq_mem((a), (b), (n), #a, #b, __FILE__, __LINE__)
/* |a - b| <= tol; false for NaN. */
#define CHECK_NEAR(a, b, tol) check_near((double)(a), (double)(b), (double)(tol), #a, #b, __FILE__, __LINE__)
/* `call` returned LS_OK; prints the text of `err` (an ls_err *, may be NULL) when not. */
#define CHECK_OK(call, err)           check_status((call), LS_OK, (err), #call, __FILE__, __LINE__)
#define CHECK_STATUS(call, want, err) check_status((call), (want), (err), #call, __FILE__, __LINE__)
/* `text` contains `part`. */
#define CHECK_CONTAINS(text, part) check_contains((text), (part), #text, __FILE__, __LINE__)

#define REQUIRE(cond)                                                                                        \
    do {                                                                                                     \
        if (!CHECK(cond)) check_stop();                                                                      \
    } while (0)
#define REQUIRE_OK(call, err)                                                                                \
    do {                                                                                                     \
        if (!CHECK_OK(call, err)) check_stop();                                                              \
    } while (0)

/* Runs `static void fn(void)` and prints "fn: N checks". */
#define CHECK_RUN(fn) check_run(#fn, fn)
/* True in sanitizer builds, which run 5 to 50 times slower: a test with thousands of cases takes a sample of
 * them. */
bool check_is_slow_build(void);
/* The exit status of main(). */
#define CHECK_DONE() check_done()
/* Makes a new folder for what the test writes, in $TMPDIR or /tmp; `out` receives its path. */
void check_new_folder(char *out, size_t size);
/* Ends the program as skipped (exit status 77), saying why. */
#define CHECK_SKIP(reason) check_skip(reason)

/* All return whether the check held, so that a loop can stop at the first failure. */
bool check_true(bool held, const char *cond, const char *file, int line);
bool check_eq_int(long long a, long long b, const char *a_text, const char *b_text, const char *file,
                  int line);
bool check_eq_str(const char *a, const char *b, const char *a_text, const char *b_text, const char *file,
                  int line);
bool check_eq_mem(const void *a, const void *b, size_t n, const char *a_text, const char *b_text,
                  const char *file, int line);
bool check_near(double a, double b, double tol, const char *a_text, const char *b_text, const char *file,
                int line);
bool check_status(ls_status got, ls_status want, const ls_err *err, const char *call, const char *file,
                  int line);
bool check_contains(const char *text, const char *part, const char *text_text, const char *file, int line);
void check_run(const char *name, void (*fn)(void));
int check_done(void);
LS_NORETURN void check_stop(void);
LS_NORETURN void check_skip(const char *reason);

#endif
