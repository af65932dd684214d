/* ckpt_test.h: a small model's variables, a folder for one test, and files as bytes. */
#ifndef LS_TESTS_CKPT_TEST_H
#define LS_TESTS_CKPT_TEST_H

#include <string.h>

#include "check.h"
#include "ckpt/ckpt_internal.h"
#include "tensors.h"

/* Five variables of three types: two parameters, a buffer, an empty parameter, optimiser state; filled from
 * `seed`.  `extra` adds one parameter "z.extra". */
ls_state *ckpt_test_vars(uint64_t seed, bool extra);
bool ckpt_test_equal(const ls_state *a, const ls_state *b);
/* ls_weights_xxh3. */
uint64_t ckpt_test_hash(const ls_state *vars);

/* A new empty folder below the system's temporary one; the same until ckpt_test_cleanup, which removes it. */
const char *ckpt_test_folder(void);
void ckpt_test_cleanup(void);
/* folder/name in one of a few static buffers. */
const char *ckpt_test_path(const char *name);

/* The whole file; REQUIREs that there is one. */
char *ckpt_test_get(const char *path, size_t *bytes);
void ckpt_test_put(const char *path, const void *data, size_t bytes);
/* Files and folders in `folder` beside "." and "..". */
int ckpt_test_entries(const char *folder);

/* More than a checkpoint of ckpt_test_vars needs, for writers. */
#define CKPT_TEST_SIZE ((size_t)64 << 10)

bool ckpt_test_there(const char *folder, const char *name);
/* Checks: the link leads to `want`; the checkpoint is whole. */
bool ckpt_test_link_is(const char *folder, const char *name, const char *want);
bool ckpt_test_whole(const char *folder, const char *name);

#endif
