/* config_test.h: experiments from texts, and what is wrong with them. */
#ifndef LS_TESTS_CONFIG_TEST_H
#define LS_TESTS_CONFIG_TEST_H

#include "config/experiment.h"

/* Makes a folder for the test's files, removed by config_test_end. */
void config_test_begin(void);
void config_test_end(void);
/* Writes a file into the folder and returns its path (static storage for the last 8 calls). */
const char *config_test_file(const char *name, const char *text);

/* Loads `text` as the file "x.yaml"; overrides are ended by NULL. */
ls_status config_test_load(ls_experiment *x, const char *text, const char *const *overrides, ls_err *err);
/* Loading `text` with one override (or NULL) must be LS_INVALID with exactly `message` behind the path of
 * the file ("3:8: ..."), or, with an override, with `message` alone. */
void config_test_refuses(const char *text, const char *override, const char *message);

#endif
