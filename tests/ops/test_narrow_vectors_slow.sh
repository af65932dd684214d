#!/usr/bin/env bash
# All op tests again as on processors without AVX-512, and without any vector extension.
set -eu
for isa in avx2 none; do
    echo "LOCKSTEP_CPU_ISA=$isa"
    LOCKSTEP_CPU_ISA=$isa "$LS_BUILD_DIR/tests/ops/test_ops"
done
