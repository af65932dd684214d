#!/usr/bin/env bash
# A checkpoint is the same file, byte by byte, whatever ranks keep: written by rank 0 alone (ddp), by all ranks each to its
# places (fsdp on a disk that all see), or through rank 0 (ranks that do not see each other's disk, by a real mpirun).  It is
# read in the same ways, and runs that go on from it end with the same file.
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
# A damaged file is refused by name, whoever reads the tensor.
cp -r "$folder/fsdp" "$folder/damaged"
size=$(stat -c %s "$folder/damaged/checkpoints/last/model.safetensors")
for at in $((size / 2)) $((size - 5)); do
    cp "$folder/fsdp/checkpoints/last/model.safetensors" "$folder/damaged/checkpoints/last/"
    printf '\252' | dd of="$folder/damaged/checkpoints/last/model.safetensors" bs=1 seek=$at conv=notrunc status=none
    code=0
    "$LOCKSTEP" train --resume "$folder/damaged" train.steps=6 >"$folder/log" 2>&1 || code=$?
    [ $code -eq 3 ] && grep -q 'tensor ".*": is damaged' "$folder/log" || { echo "damaged at $at: code $code"; cat "$folder/log"; exit 1; }
done
for strategy in ddp zero1 fsdp hybrid; do
    cp -r "$folder/$strategy" "$folder/once-$strategy"
    "$LOCKSTEP" train --resume "$folder/$strategy" train.steps=6 train.keep=1 >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    same "$strategy, gone on with" "$folder/$strategy"
done
if why=$(no_mpi); then
    echo "ranks on disks of their own: skipped: $why"
    exit 0
fi
mkdir "$folder/a" "$folder/b"
export LOCKSTEP_COMM_HOSTS=2 # each rank believes that all cores are its own: with other threads, sums may have other bits
# What is under the same name on the other disk is another file, or a damaged copy: it passes rank 0.
for copy in short damaged; do
    cp -r "$folder/once-fsdp" "$folder/a/$copy"
    cp -r "$folder/once-fsdp" "$folder/b/$copy"
    if [ $copy = short ]; then
        truncate -s -1 "$folder/b/short/checkpoints/last/model.safetensors"
    else
        printf '\252' | dd of="$folder/b/damaged/checkpoints/last/model.safetensors" bs=1 seek=$((size / 2)) conv=notrunc status=none
    fi
    timeout 120 "${mpi[@]}" -n 1 -wdir "$folder/a" "$LOCKSTEP" train --resume $copy --threads 1 train.steps=6 train.keep=1 : \
        -n 1 -wdir "$folder/b" "$LOCKSTEP" train --resume $copy --threads 1 train.steps=6 train.keep=1 >"$folder/log" 2>&1 ||
        { cat "$folder/log"; exit 1; }
    [ $copy = short ] || grep -q 'as rank 1 sees it, is damaged in "' "$folder/log" || { echo "nobody is blamed"; cat "$folder/log"; exit 1; }
    same "gone on with, $copy copy on the other disk" "$folder/a/$copy"
done
mv "$folder/once-ddp" "$folder/ddp-before"
rm -rf "$folder/ddp"
mv "$folder/ddp-before" "$folder/ddp"
timeout 120 "${mpi[@]}" -n 1 -wdir "$folder/a" "$LOCKSTEP" train "${settings[@]}" --run-dir run parallel.strategy=fsdp : \
    -n 1 -wdir "$folder/b" "$LOCKSTEP" train "${settings[@]}" --run-dir run parallel.strategy=fsdp >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
same "ranks on disks of their own" "$folder/a/run"
