#!/usr/bin/env bash
# Training on a folder of JPEG files: it learns, random crops do not disturb a resume, and a damaged file is named.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work

run 0 data make kind=images path=set train=120 test=40 classes=4 seed=2
images=(data.kind=images data.path=set data.pad=4 data.crop=32 data.flip=true data.normalise=imagenet batch.per_rank=16)

run 0 train vit-tiny "${images[@]}" train.steps=20 --run-dir whole --quiet
run 0 train vit-tiny "${images[@]}" train.steps=9 --run-dir parts --quiet
run 0 train vit-tiny "${images[@]}" data.workers=3 train.steps=20 --resume=parts --quiet
[ "$(hash parts)" = "$(hash whole)" ] || fail "resumed with other workers: $(hash parts), the whole $(hash whole)"
run 0 train vit-tiny "${images[@]}" data.flip=false train.steps=20 --run-dir still --quiet
[ "$(hash still)" != "$(hash whole)" ] || fail "data.flip changes nothing"
# Evaluation has nothing random in it.
run 0 eval whole --json && cp "$work/out" first
run 0 eval whole data.flip=false --json
[ "$(cat "$work/out")" = "$(cat first)" ] || fail "eval differs without flips: $(cat "$work/out" first)"

run 0 train resnet18-images data.path=set model.trial=vit-tiny train.steps=3 --run-dir from-file --quiet
run 0 data make kind=unpaired path=pairs train=6 test=4 shape=3x40x36
run 0 train cyclegan-1 data.kind=images data.layout=unpaired data.path=pairs data.resize=36 data.crop=32 data.flip=true \
    data.normalise=unit model.size=32 model.blocks=1 train.steps=1 train.sample_every=1st --run-dir gan --quiet

# What lies about among images is left out with one warning, counted by `data info`, which knows the classes by name.
cp -r set untidy
echo "to be sorted" >untidy/train/class-001/notes.txt
run 0 train vit-tiny "${images[@]}" data.path=untidy train.steps=2 --run-dir untidy-run
says err "untidy/train/class-001/notes.txt is no JPEG or PNG and is left out"
[ "$(grep -c notes.txt "$work/err")" -eq 1 ] || fail "not one warning: $(cat "$work/err")"
says err "the model tells 10 classes apart, the data set has 4 (class-000 ... class-003): model.classes=4 fits"
run 0 train vit-tiny "${images[@]}" model.classes=4 train.steps=2 --run-dir four
grep -q 'classes apart' "$work/err" && fail "a model that fits is warned of: $(cat "$work/err")"
run 3 train vit-tiny "${images[@]}" model.classes=3 train.steps=2
says err "or raise model.classes"
run 0 data info kind=images path=untidy
says out "38       class-001"
says out "ignored   1 file that is no JPEG or PNG, such as untidy/train/class-001/notes.txt"
run 0 data info kind=images path=untidy --json
is class_names '["class-000", "class-001", "class-002", "class-003"]' ignored 1

# One damaged file stops the run with code 3, unless one may be skipped; a second one is too many.
file=$(ls set/train/class-001/*.jpg | head -n 1)
truncate -s -100 "$file"
run 3 train vit-tiny "${images[@]}" train.epochs=1 --run-dir stopped
says err "$file: damaged JPEG: Premature end of JPEG file"
run 0 train vit-tiny "${images[@]}" train.epochs=1 data.on_error=skip data.max_skipped=1 --run-dir skipped
says err "sample skipped: $PWD/$file: damaged JPEG"
printf 'no image' >set/train/class-002/zzz.jpg
run 3 train vit-tiny "${images[@]}" train.epochs=1 data.on_error=skip data.max_skipped=1 --run-dir too-many
says err "2 damaged samples in epoch 0"
says err "data.max_skipped"
# Skipping needs no second setting, and holds for validation, too.
file=$(ls set/test/class-001/*.jpg | head -n 1)
truncate -s -100 "$file"
run 0 train vit-tiny "${images[@]}" train.epochs=1 data.on_error=skip --run-dir both --quiet
says err "sample skipped: $PWD/$file: damaged JPEG"

[ "$failures" -eq 0 ] && echo "images: all as expected"
exit $((failures > 0))
