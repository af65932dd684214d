#!/usr/bin/env bash
# Includes point downwards; and the checker notices when they do not.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/checker_lib.sh"
checker=check_includes.sh

expect pass "lower layers"          src/exec/a.c         '#include <stdio.h>' '#include "exec/b.h"' '#include "base/alloc.h"'
expect pass "neighbour"             src/ops/a.c          '#include "b.h"' '#include "lockstep/graph.h"'
expect pass "registry sees backends" src/backend/list.c  '#include "backend/ref/a.h"' '#include "backend/cpu/b.h"'
expect pass "backend sees its parent" src/backend/ref/a.c '#include "backend/backend.h"' '#include "backend/ref/b.h"'
expect pass "own internal header"   src/base/a.c         '#include "base/a_internal.h"'
expect pass "cmd sees all"          cmd/a.c              '#include "bench/bench.h"' '#include "lockstep/lockstep.h"'
expect fail "base includes graph"   src/base/a.c         '#include "graph/graph.h"'
expect fail "indented include"      src/base/a.c         '#  include "graph/graph.h"'
expect fail "ops include backend"   src/ops/a.c          '#include "backend/backend.h"'
expect fail "public header above"   src/graph/a.c        '#include "lockstep/plan.h"'
expect fail "public, angle brackets" src/graph/a.c       '#include <lockstep/plan.h>'
expect fail "public includes above" include/lockstep/tensor.h '#include "lockstep/graph.h"'
expect fail "ref includes cpu"      src/backend/ref/a.c  '#include "backend/cpu/conv.h"'
expect fail "cpu includes ref"      src/backend/cpu/a.c  '#include "backend/ref/ref.h"'
expect fail "library includes cmd"  src/bench/a.c        '#include "cmd/cmd.h"'
expect fail "unknown folder"        src/misc/a.c         '#include <stdio.h>'
expect fail "unknown header"        src/base/a.c         '#include "misc/a.h"'
expect fail "foreign internal"      src/graph/a.c        '#include "base/a_internal.h"'

expect_tree_passes
