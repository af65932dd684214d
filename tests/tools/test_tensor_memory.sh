#!/usr/bin/env bash
# Nobody above the executor follows an address of a tensor; and the checker notices when somebody does.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/checker_lib.sh"
checker=check_tensor_memory.sh

expect pass "a handle"              src/train/a.c   'const ls_tensor *t = ls_plan_input(p, "x");' 'st = ls_tensor_read(t, 0, to, t->bytes, err);'
expect pass "data of something else" src/train/a.c  'const ls_tensor *t;' 'fputs(text.data, stdout);' 'r->data = w->data;' 'x = s->t.data;'
expect pass "another t of another file" src/base/b.c 'ls_text *t;' 'puts(t->data);'
expect pass "in a comment"          src/train/a.c   '/* no ls_buffer_address here,' ' * nor ls_buffer_host */' 'int x; /* ls_buffer */'
expect pass "the executor"          src/exec/a.c    'void *p = ls_buffer_address(t->buffer, t->offset);'
expect pass "a backend"             src/backend/ref/a.c 'memcpy(ls_buffer_host(b, 0), x, 4);'
expect pass "memory of a test"      tests/ckpt/a.c  'ls_buffer b = ls_buffer_of_host(&x, sizeof x);'
expect fail "a pointer in a tensor" src/train/a.c   'const ls_tensor *t = ls_plan_input(p, "x");' '*(float *)t->data = 1;'
expect fail "the second of two"     src/train/a.c   'const ls_tensor *a = f(x), *b = g(y);' 'memcpy(to, b->data, n);'
expect fail "straight from a plan"  cmd/a.c         'float *x = ls_plan_input(p, "x")->data;'
expect fail "straight from a state" src/nn/a.c      'void *x = ls_state_at(s, i)->buffer;'
expect fail "a parameter"           src/ckpt/a.c    'static void f(const ls_tensor *t)' '{' '    g(t->buffer);'
expect fail "an array"              bench/a.c       'ls_tensor all[4];' 'g(all[2].offset);'
expect fail "asks for the address"  src/nn/a.c      'void *p = ls_buffer_address(b, 0);'
expect fail "asks for the host's"   tests/nn/a.c    'float *p = ls_buffer_host(b, 0);'
expect fail "includes the header"   src/ckpt/a.c    '#include "backend/buffer.h"'
expect fail "makes a buffer"        src/train/a.c   'st = ls_buffer_alloc(&b, dev, 4, err);'
expect fail "has a buffer"          examples/a.c    'ls_buffer *b;'
expect fail "through a handle's handle" src/train/a.c 'const ls_tensor *t;' 'x = t->buffer->address;'
expect fail "in a test"             tests/train/a.c 'const ls_tensor *t;' 'float *x = t->data;'

expect_tree_passes
