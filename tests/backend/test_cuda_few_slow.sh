#!/usr/bin/env bash
# Convolutions with few channels on the GPU against sums on the host, for eight shapes and all passes.
exec "$LS_BUILD_DIR/bench_cuda" few
