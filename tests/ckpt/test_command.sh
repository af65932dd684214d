#!/usr/bin/env bash
# `lockstep ckpt`, and whether another reader of the safetensors layout understands our files.
set -uo pipefail
: "${LOCKSTEP:?the program to test}"
python=
for p in python3 /usr/bin/python3; do
    "$p" -c 'import numpy' 2>/dev/null && python=$p && break
done
[ -n "$python" ] || { echo "skipped: no python3 with numpy" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# run CODE ARGUMENT...: `lockstep ckpt ARGUMENT...` must end with CODE.
run() {
    local want=$1 got
    shift
    "$LOCKSTEP" ckpt "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$want" ] || fail "lockstep ckpt $*: exit code $got, not $want: $(cat "$work/err")"
}
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
# says out|err TEXT
says() {
    grep -qF -- "$2" "$work/$1" || fail "std$1 lacks \"$2\": $(head -c 600 "$work/$1")"
}

"$python" tests/ckpt/layout.py make "$work/in.safetensors" || fail "layout.py make"
run 0 import "$work/in.safetensors" "$work/ckpt"
says err 'tensor "bn.num_batches_tracked" is left out'
run 2 import "$work/in.safetensors" "$work/ckpt"
says err "is there already"
run 0 show "$work/ckpt"
says out "fc.weight"
says out "(1, 2, 3)"
run 0 show "$work/ckpt" --json
says out '"name":"fc.weight"'
run 0 verify "$work/ckpt"
run 0 export "$work/ckpt" "$work/out.safetensors"
run 0 export "$work/ckpt"
"$python" tests/ckpt/layout.py check "$work/ckpt/model.safetensors" "$work/out.safetensors" "$work/ckpt.safetensors" ||
    fail "our files do not follow the layout"

# A run stands for its newest checkpoint.
mkdir -p "$work/run/checkpoints" && ln -s ../../ckpt "$work/run/checkpoints/last"
run 0 verify "$work/run"
says out "checkpoints/last"

# The last byte belongs to one of the narrowest tensors: "mask", as "none" is empty.
printf '\x07' | dd of="$work/ckpt/model.safetensors" bs=1 seek=$(($(stat -c %s "$work/ckpt/model.safetensors") - 1)) \
    conv=notrunc status=none
run 3 verify "$work/ckpt"
says err "model.safetensors"
says err 'tensor "mask"'
run 3 verify "$work/ckpt" --json
says out '"ok":false'
says out '"tensor":"mask"'
run 3 export "$work/ckpt" "$work/bad.safetensors"
[ ! -e "$work/bad.safetensors" ] || fail "a damaged checkpoint was exported"
says err 'put a copy of it in its place: there is no whole checkpoint beside it'
# ... but for one: the newest that is whole.
mkdir "$work/several"
for step in 2 4; do run 0 import "$work/in.safetensors" "$work/several/step-0000000$step"; done
for step in 6 8; do cp -r "$work/ckpt" "$work/several/step-0000000$step"; done
ln -s step-00000008 "$work/several/last"
for action in verify 'verify --json' export; do
    run 3 $action "$work/several/last"
    says err "take $work/several/step-00000004, which is whole, or put a copy of this one in its place"
done
run 3 verify "$work/several/last" --json
says out "\"remedy\":\"take $work/several/step-00000004, which is whole"
echo '{' >"$work/ckpt/manifest.json"
run 3 show "$work/ckpt"
says err "manifest.json: ends after 2 bytes; put a copy of it in its place"
run 2 show "$work/nowhere"
says err "there is no such checkpoint or run"
head -c 100 "$work/in.safetensors" >"$work/cut.safetensors"
run 3 import "$work/cut.safetensors"
says err "cut.safetensors"
says err "fetch or write the file again"
[ ! -e "$work/cut" ] || fail "a cut file became a checkpoint"
run 2 verify
run 2 verfy "$work/ckpt"
says err 'did you mean "verify"'
run 2 verify "$work/ckpt" more
run 0 --help

[ "$failures" -eq 0 ]
