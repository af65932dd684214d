#!/usr/bin/env bash
# The CPU's kernels of all ops again as on processors without AVX-512, and without any vector extension.  Those of the reference,
# and with them the gradient rules, are the same on every processor.
set -eu
for isa in avx2 none; do
    echo "LOCKSTEP_CPU_ISA=$isa"
    LS_TEST_DEVICE=cpu LOCKSTEP_CPU_ISA=$isa "$LS_BUILD_DIR/tests/ops/test_ops"
done
