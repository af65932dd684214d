#!/usr/bin/env bash
# `lockstep data`: makes sets, describes them, finds damage, and ends with the right code.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# expect CODE PART ARGUMENT...: the command must end with CODE and say PART.
expect() {
    local code=$1 part=$2 rc=0 text
    shift 2
    text=$("$LOCKSTEP" data "$@" 2>&1) || rc=$?
    if [ "$rc" -ne "$code" ] || [[ $text != *"$part"* ]]; then
        printf 'failed: lockstep data %s\n  code %d, expected %d; expected to read: %s\n%s\n' "$*" "$rc" "$code" "$part" "$text"
        failures=$((failures + 1))
    fi
}

kinds="idx cifar npy"
if "$LOCKSTEP" data make kind=hdf5 path="$folder/probe" train=1 test=1 2>&1 | grep -q 'built without HDF5'; then
    echo "kind hdf5 is left out: built without HDF5"
else
    kinds+=" hdf5"
fi
for kind in $kinds; do
    expect 0 "synthetic set" make kind=$kind path="$folder/$kind" train=50 test=20 classes=3
    expect 0 '"samples":50' info kind=$kind path="$folder/$kind" images=train --json
    expect 0 "20 samples read, 0 damaged" verify kind=$kind path="$folder/$kind" images=test classes=3
    expect 3 "the label of sample" verify kind=$kind path="$folder/$kind" images=test classes=2
    expect 3 '"event":"verify","samples":20,"damaged":' verify kind=$kind path="$folder/$kind" images=test classes=2 --json
    expect 2 "already there" make kind=$kind path="$folder/$kind"
done
for format in jpeg png; do
    set_=$folder/$format
    expect 0 "synthetic set" make kind=images path="$set_" train=50 test=20 classes=3 format=$format
    expect 0 '"samples":50' info kind=images path="$set_" images=train --json
    expect 0 '{"name":"image","dtype":"f32","shape":[3,24,24]}' info kind=images path="$set_" resize=28 crop=24 --json
    expect 0 "20 samples read, 0 damaged" verify kind=images path="$set_" images=test classes=3
    expect 3 "holds 3 folders of classes" verify kind=images path="$set_" classes=2
    expect 2 "already there" make kind=images path="$set_" train=50 format=$format
    expect 0 "layout=unpaired" make kind=unpaired path="$set_-pairs" train=9 test=4 format=$format
    expect 0 "5 samples read, 0 damaged" verify kind=images layout=unpaired path="$set_-pairs"
done
for file in "$folder"/{jpeg,png}/test/class-001/*; do
    truncate -s -40 "$file"
    expect 3 "damaged   $file: damaged " verify kind=images path="$(dirname "$(dirname "$(dirname "$file")")")" images=test
done
expect 0 "synthetic set" make kind=cifar path="$folder/waves" train=50 test=20 pattern=waves
expect 0 "20 samples read, 0 damaged" verify kind=cifar path="$folder/waves" images=test
if cmp -s "$folder/waves/test_batch.bin" "$folder/cifar/test_batch.bin"; then
    echo "failed: pattern=waves changes nothing"
    failures=$((failures + 1))
fi
expect 2 "tiles and waves" make kind=cifar path="$folder/x" pattern=dots
expect 2 "pattern is for synthetic data" info kind=cifar path="$folder/waves" pattern=waves
expect 2 "jpeg and png" make kind=images path="$folder/x" format=gif
expect 2 "only images" make kind=npy path="$folder/x" format=png
if [[ $kinds == *hdf5* ]]; then
    for gzip in 0 1; do
        expect 0 "field=cloud" make kind=hdf5 path="$folder/cloud$gzip" train=8 test=4 points=50 gzip=$gzip
        expect 0 "field     cloud    f32 (3, 20)" info kind=hdf5 path="$folder/cloud$gzip" field=cloud box=auto points=20
        expect 0 "8 samples read, 0 damaged" verify kind=hdf5 path="$folder/cloud$gzip" field=cloud
    done
    expect 0 "box       -30:30" info kind=hdf5 path="$folder/cloud0/test.h5" images=:/point_cloud field=cloud box=-30:30
    expect 3 "holds no array \"/images\"; it holds labels, point_cloud" info kind=hdf5 path="$folder/cloud0"
    head -c 700 "$folder/hdf5/test.h5" >"$folder/short.h5"
    expect 3 "$folder/short.h5: cannot be opened (HDF5: truncated file" verify kind=hdf5 path="$folder" images=short.h5
fi
expect 2 "points is for data of kind hdf5" info kind=synthetic points=3
expect 2 "not for clouds" make kind=hdf5 path="$folder/x" points=3 pattern=waves
expect 2 "not as npy" make kind=npy path="$folder/clouds" points=3
expect 0 "synthetic set" make kind=npy path="$folder/new/maps" maps=16 train=6 test=2
expect 0 "field     image    f32 (1, 16, 16)" info kind=npy path="$folder/new/maps" images=test
expect 2 "not as idx" make kind=idx path="$folder/x" maps=16
expect 0 '"samples":70' info kind=synthetic count=70 shape=3x8x8 --json
truncate -s 1000 "$folder/idx/t10k-images-idx3-ubyte"
expect 3 "$folder/idx/t10k-images-idx3-ubyte: truncated" verify path="$folder/idx" images=test
expect 3 "no such file" info path="$folder/nowhere"
expect 2 'did you mean "path"' info pth=x
expect 2 "whole number" info kind=synthetic count=many
expect 2 "like 3x32x32" make path="$folder/x" shape=3x
expect 2 "info, verify and make" describe
expect 2 "info, verify or make" --json
expect 0 "Settings:" --help

[ "$failures" -eq 0 ]
