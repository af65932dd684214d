#!/usr/bin/env bash
# What `lockstep train` refuses: one message each that names the thing, the right exit code, and for a bad experiment
# (code 2) nothing created.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
run 0 data make kind=npy path=npy train=64 test=32
run 0 data make kind=idx path=idx train=64 test=32
for nothing in train=0 test=0 classes=0; do
    run 2 data make kind=idx path=nothing $nothing
    says err "$nothing: must be a whole number from 1 on"
done
[ ! -e nothing ] || fail "a refused data set was written"

# refused CODE PART ARGUMENT...: training must end with CODE and say PART, in one line.
refused() {
    local code=$1 part=$2
    shift 2
    rm -rf runs
    run "$code" train mnist batch.per_rank=16 train.steps=8 --quiet "$@"
    says err "$part"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$*: not one message: $(cat "$work/err")"
    [ -s "$work/out" ] && fail "$*: something on stdout: $(head -c 300 "$work/out")"
    if [ "$code" -eq 2 ] && [ -e runs ]; then fail "$*: a refused experiment left $(ls runs)"; fi
}
npy=(data.kind=npy data.path=npy)

# The experiment.
refused 2 'unknown key "optimizer.lrr"; did you mean "optimizer.lr"' "${npy[@]}" optimizer.lrr=1
refused 2 'unknown key "data.pth"' "${npy[@]}" data.pth=x
refused 2 '"fast" is no number' "${npy[@]}" optimizer.lr=fast
refused 2 '"1.5" is no whole number' "${npy[@]}" batch.per_rank=1.5
refused 2 'data.kind' data.kind=nmpy
refused 2 'train.steps' "${npy[@]}" train.steps=-1
refused 2 'more than the training set has (64)' "${npy[@]}" batch.per_rank=65
refused 2 'were asked for, but the set has 0 to 64' "${npy[@]}" data.train_range=0:65
refused 2 'points is for data of kind hdf5' "${npy[@]}" data.points=5
printf 'name: x\nmodel: {trial: mnist}\nbatch: {per_rank: [1, 2]}\n' >list.yaml
run 2 train list.yaml
says err 'list.yaml:3:'
printf 'name: x\nmodel: {trial: mnist\n' >torn.yaml
run 2 train torn.yaml
says err 'torn.yaml:'
run 2 train no-such-experiment
says err 'no-such-experiment'
[ ! -e runs ] || fail "a refused experiment left $(ls runs)"

# Files that are not there or cannot be read.
{ printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 28, 28), }" && head -c $((64 * 784 * 4)) /dev/zero; } >float.npy
refused 3 'nowhere/train-images.npy: no such file' data.kind=npy data.path=nowhere
refused 3 'nowhere/train-images-idx3-ubyte: no such file' data.kind=idx data.path=nowhere
# ... with what makes them, or where they are had.
refused 3 '`lockstep data make kind=idx path=FOLDER`' data.kind=idx data.path=nowhere
refused 3 'dataset-fashion-mnist' data.kind=idx data.path=nowhere
refused 3 '`lockstep data make kind=cifar path=FOLDER`' data.kind=cifar data.path=nowhere
refused 3 'train/CLASS/FILE' data.kind=images data.path=nowhere
refused 2 'change data.train_range or data.test_range' "${npy[@]}" data.train_range=0:65
refused 2 'data.crop is for images of bytes' data.kind=npy data.path=. data.train_images=float.npy data.crop=8
mkdir -p folder/train-images.npy
refused 3 'folder/train-images.npy: is no plain file' data.kind=npy data.path=folder
cp -r npy secret
chmod 000 secret/train-images.npy
if [ "$(id -u)" -ne 0 ]; then
    refused 3 'secret/train-images.npy: cannot be opened: Permission denied' data.kind=npy data.path=secret
elif chmod 755 . && setpriv --reuid=65534 --clear-groups "$LOCKSTEP" info >/dev/null 2>&1; then
    setpriv --reuid=65534 --clear-groups "$LOCKSTEP" data verify kind=npy path="$work/secret" images=train >"$work/out" 2>"$work/err"
    [ $? -eq 3 ] || fail "a file without permission: not exit code 3: $(cat "$work/err")"
    says err 'secret/train-images.npy: cannot be opened: Permission denied'
fi
: >empty.npy
refused 3 'empty.npy: is empty' data.kind=npy data.path=. data.train_images=empty.npy data.test_images=npy/test-images.npy

# Sets without samples.  npy_header SHAPE DTYPE: the 128 bytes before an array.
npy_header() {
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': $1, }"
}
npy_header '(0, 28, 28)' '|u1' >none.npy
refused 3 'none.npy: holds no samples' data.kind=npy data.path=. data.train_images=none.npy
mkdir none
printf '\0\0\x08\x03\0\0\0\0\0\0\0\x1c\0\0\0\x1c' >none/train-images-idx3-ubyte
printf '\0\0\x08\x01\0\0\0\0' >none/train-labels-idx1-ubyte
refused 3 'none/train-images-idx3-ubyte: holds no samples' data.kind=idx data.path=none

# Samples that cannot be: found when they are read, within the first epoch.
poke() { # FILE OFFSET BYTES
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
cp -r npy label
poke label/train-labels.npy $((128 + 22)) '\x0b'
refused 3 'label/train-labels.npy: the label of sample 22 (byte 150) is 11, but labels must lie in 0 to 9' data.kind=npy data.path=label
grep -q '"state": "failed"' runs/*/summary.json || fail "a run that met a bad label does not say that it failed"
cp -r idx label-idx
poke label-idx/train-labels-idx1-ubyte 30 '\x0b'
refused 3 'label-idx/train-labels-idx1-ubyte: the label of sample 22 (byte 30) is 11' data.kind=idx data.path=label-idx
{ npy_header '(64, 28, 28)' '<f4' && head -c $((64 * 784 * 4)) /dev/zero; } >nan.npy
poke nan.npy $((128 + (7 * 784 + 100) * 4)) '\0\0\xc0\x7f'
refused 3 'nan.npy: sample 7, element 100 (byte 22480) is nan' data.kind=npy data.path=. data.train_images=nan.npy \
    data.train_labels=npy/train-labels.npy data.test_images=npy/test-images.npy data.test_labels=npy/test-labels.npy

# HDF5, where the build has it.
"$LOCKSTEP" data make kind=hdf5 path=h5 train=64 test=32 >"$work/out" 2>"$work/err"
if grep -q 'built without HDF5' "$work/err"; then
    refused 1 'built without HDF5' data.kind=hdf5 data.path=idx data.train_images=train-images-idx3-ubyte
else
    h5=(data.kind=hdf5 data.path=h5)
    refused 3 'h5/nothing.h5: no such file' "${h5[@]}" data.train_images=nothing.h5:/images
    refused 3 'h5/train.h5: holds no array "/nothing"; it holds images, labels' "${h5[@]}" data.train_images=train.h5:/nothing
    refused 2 'more than the training set has (64)' "${h5[@]}" batch.per_rank=65
    refused 3 'npy/train-images.npy: cannot be opened (HDF5: file signature not found)' data.kind=hdf5 data.path=npy \
        data.train_images=train-images.npy
    refused 2 'input "image" is not in the data set' "${h5[@]}" data.field=other
fi

[ "$failures" -eq 0 ] && echo "refusals: all as expected"
exit $((failures > 0))
