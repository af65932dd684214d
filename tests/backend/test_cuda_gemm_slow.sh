#!/usr/bin/env bash
# Products of our own on the GPU, with what follows them, against cuBLASLt's and sums in double: every way, odd sizes and ViT's.
exec "$LS_BUILD_DIR/bench_cuda_gemm" check
