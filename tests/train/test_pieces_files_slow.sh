#!/usr/bin/env bash
# A checkpoint is the same file, byte by byte, whatever ranks keep: written by rank 0 alone (ddp), by all ranks each to its
# places (fsdp on a disk that all see), or through rank 0 (ranks that do not see each other's disk, by a real mpirun).
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../tools/mpi_here.sh"
export LOCKSTEP_TUNE=off
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
settings=(mnist --threads 1 data.kind=synthetic data.train_range=0:64 data.test_range=64:81 train.steps=4 batch.per_rank=4
    optimizer.name=adam optimizer.lr=0.001)

# same NAME RUN: its newest checkpoint is whole, and the one of ddp
same() {
    "$LOCKSTEP" ckpt verify "$2/checkpoints/last" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    cmp "$folder/ddp/checkpoints/last/model.safetensors" "$2/checkpoints/last/model.safetensors" || { echo "$1: another file"; exit 1; }
    [ "$(find "$2/checkpoints" -type f | grep -cv reserve)" -eq 2 ] || { echo "$1: left something behind"; find "$2/checkpoints"; exit 1; }
    echo "$1: the same file"
}

for strategy in ddp zero1 fsdp hybrid; do
    "$LOCKSTEP" train "${settings[@]}" -n 2 --run-dir "$folder/$strategy" parallel.strategy=$strategy >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    same "$strategy" "$folder/$strategy"
done
if why=$(no_mpi); then
    echo "ranks on disks of their own: skipped: $why"
    exit 0
fi
mkdir "$folder/a" "$folder/b"
export LOCKSTEP_COMM_HOSTS=2
timeout 120 "${mpi[@]}" -n 1 -wdir "$folder/a" "$LOCKSTEP" train "${settings[@]}" --run-dir run parallel.strategy=fsdp : \
    -n 1 -wdir "$folder/b" "$LOCKSTEP" train "${settings[@]}" --run-dir run parallel.strategy=fsdp >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
same "ranks on disks of their own" "$folder/a/run"
