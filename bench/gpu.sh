#!/usr/bin/env bash
# gpu.sh [PROGRAM]: the training steps of all published networks on this machine's GPU, beside the best that PyTorch reached.
#
# PROGRAM: lockstep (default: build/lockstep).  Environment: SECONDS_EACH (2) of timing a row, ROWS ("mnist:64 vit:96"; default
# all), MATH (bf16, tf32 or fp32).  The last table has milliseconds a step; PyTorch's figures are those of its best mode in bf16
# (eager, CUDA graph, compile, compile + CUDA graph), 2.11 on one H200, data on the device.
set -uo pipefail
program=${1:-build/lockstep}
each=${SECONDS_EACH:-2}
rows=${ROWS:-mnist:64 mnist:8192 resnet18:48 resnet18:256 vit:96 vit:256 cyclegan:1 cyclegan:16 cosmogan:64 cosmogan:256 aae:32 aae:128}
math=${MATH:-tf32}
settings=()
case $math in
bf16) settings=(precision=bf16) ;; # products that stay fp32 are rounded as in tf32, as in PyTorch
tf32) settings=(precision=tf32) ;;
esac

torch_best() {
    case $1 in
    mnist:64) echo 0.1815 ;; mnist:8192) echo 3.374 ;;
    resnet18:48) echo 3.722 ;; resnet18:256) echo 14.13 ;;
    vit:96) echo 29.5 ;; vit:256) echo 72.8 ;;
    cyclegan:1) echo 22.06 ;; cyclegan:16) echo 191.6 ;;
    cosmogan:64) echo 13.61 ;; cosmogan:256) echo 51.2 ;;
    aae:32) echo 4.725 ;; aae:128) echo 15.08 ;;
    *) echo nan ;;
    esac
}

if ! "$program" info | grep -q '^backend cuda *[A-Z]' || "$program" info | grep -q '^backend cuda  *not usable'; then
    "$program" info | grep '^backend cuda'
    exit 77
fi
table=$(printf '%-10s %6s %10s %12s %8s %12s\n' network batch "ms ($math)" 'torch (bf16)' ratio 'planned MiB')
for row in $rows; do
    model=${row%:*} batch=${row#*:}
    json=$("$program" bench "$model" batch.per_rank="$batch" "${settings[@]}" --device cuda --seconds "$each" --json 2>/tmp/gpu-bench-err.$$ | tail -n 1)
    table+=$'\n'$(MODEL=$model BATCH=$batch BEST=$(torch_best "$row") python3 -c '
import json, os, sys
try:
    o = json.loads(sys.argv[1])
    ms, best = 1e3 * o["step_s"]["p50"], float(os.environ["BEST"])
    print("%-10s %6s %10.4g %12.4g %7.2fx %12.0f" % (os.environ["MODEL"], os.environ["BATCH"], ms, best, best / ms, o["planned_bytes"] / 2**20))
except Exception:
    print("%-10s %6s failed: %s" % (os.environ["MODEL"], os.environ["BATCH"], open(sys.argv[2]).read().strip()[:200]))
' "$json" /tmp/gpu-bench-err.$$)
    rm -f /tmp/gpu-bench-err.$$
done
printf '%s\n' "$table"
