#!/usr/bin/env bash
# A plug-in outside the source tree, against an installed copy alone: with gcc and clang, as C and as C++; and a program of
# one's own by pkg-config.  What the program exports is what the public headers declare.
set -uo pipefail
: "${LS_BUILD_DIR:?the build folder}" "${LOCKSTEP:?the program}"
if [ ! -e "$LS_BUILD_DIR/tools/lockstep.1" ]; then
    echo "skipped: builds with a sanitizer are not installed"
    exit 77
fi
source=$PWD
. tests/cli/cli_lib.sh
prefix=$work/a\ prefix # also paths with a blank
if ! cmake --install "$LS_BUILD_DIR" --prefix "$prefix" >"$work/log" 2>&1; then
    echo "FAILED: cmake --install: $(tail -5 "$work/log")"
    exit 1
fi
LOCKSTEP=$prefix/bin/lockstep
cd "$work" || exit 1

# --- exported names -------------------------------------------------------------------------------------------------
if command -v nm >/dev/null; then
    nm -D --defined-only "$LOCKSTEP" | awk '{ print $3 }' | grep '^lsi\?_' | sort -u >exported
    # Declarations with the pre-processor done, one per line; inline functions, types and macros are not exported.
    echo '#include <lockstep/lockstep.h>' | cc -E -P -DLS_PLAIN_OPS -x c "-I$prefix/include" - | tr '\n' ' ' | sed 's/[;{}]/&\n/g' |
        grep -v -e typedef -e inline -e '{' | grep -o '\bls_[a-z0-9_]*\( ([^*]\|(\)' | tr -d ' (' | sort -u >declared
    n=$((n + 2))
    [ "$(wc -l <declared)" -gt 150 ] || fail "only $(wc -l <declared) functions were found in the headers"
    missing=$(comm -13 exported declared | tr '\n' ' ')
    surplus=$(comm -23 exported declared | grep -vx ls_trials | tr '\n' ' ')
    [ -z "$missing" ] || fail "declared, but not exported to plug-ins: $missing"
    [ -z "$surplus" ] || fail "exported, but in no public header: $surplus"
fi

# What travels by value is part of the layout that plug-ins are compared by.
layout=$(sed -n '/^#define LS_TRIAL_LAYOUT/,/^#define LS_SIZES3/p' "$prefix/include/lockstep/trial.h")
for type in $(sed -n 's/^} \(ls_[a-z_]*_args\);.*/\1/p' "$prefix/include/lockstep/nn.h") ls_trial ls_setting ls_optimiser ls_shape; do
    n=$((n + 1))
    grep -q "\b$type\b" <<<"$layout" || fail "$type is not part of LS_TRIAL_LAYOUT"
done

# --- a plug-in by its own Makefile ------------------------------------------------------------------------------------
run 0 info --cflags
says out "-I$work/a\\ prefix/"
run 0 new blobs
for compiler in gcc clang; do
    command -v make >/dev/null && command -v $compiler >/dev/null || continue
    n=$((n + 1))
    env -u LOCKSTEP make -C blobs -B CC=$compiler >make.log 2>&1 || fail "make with $compiler: $(cat make.log)"
    grep -q "$source" make.log && fail "make looked into the source tree: $(cat make.log)"
    grep -q warning make.log && fail "$compiler warns: $(cat make.log)"
    run 0 train blobs/blobs.yaml train.report_every=1st train.steps=48 --run-dir "run-$compiler" --quiet
    losses "run-$compiler" | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR == 48 && last < first / 3) }' ||
        fail "$compiler: the loss does not fall: $(losses "run-$compiler" | sed -n '1p;$p' | tr '\n' ' ')"
done
[ -e blobs/blobs.so ] || echo "no make, gcc or clang: nothing was built"

# --- the same as C++ ----------------------------------------------------------------------------------------------------
# g++ misses initialisers of the arguments that were left out.
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    n=$((n + 1))
    $compiler -x c++ -std=c++20 -shared -fPIC -Wall -Wextra -Wconversion -Wno-missing-field-initializers "-I$prefix/include" -o cxx.so blobs/blobs.c >cxx.log 2>&1 ||
        fail "$compiler: $(head -5 cxx.log)"
    [ -s cxx.log ] && fail "$compiler warns: $(head -5 cxx.log)"
    run 0 train blobs/blobs.yaml model.trial=./cxx.so train.report_every=1st train.steps=48 --run-dir "run-$compiler" --quiet
    [ "$(hash "run-$compiler")" = "$(hash run-gcc)" ] || fail "$compiler: $(hash "run-$compiler"), gcc: $(hash run-gcc)"
done

# --- the trials of the build need no more than a plug-in has ------------------------------------------------------------
# own FILE SYMBOL NAME [SETTING...]: the file of src/trials, alone with the installed headers, makes the plan that the build's
# makes, whichever compiler it comes from: they differ in which argument of a call they evaluate first
own() {
    local file=$1 symbol=$2 name=$3 compiler before
    shift 3
    printf '#include "trials/classifier.c"\n#include "trials/%s.c"\nLS_TRIAL_PLUGIN(%s);\n' "$file" "$symbol" >own.c
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        n=$((n + 1))
        $compiler -std=c17 -shared -fPIC "-I$prefix/include" -Iown -o "own-$name.so" own.c 2>cc.log ||
            fail "$file.c as a plug-in, $compiler: $(head -5 cc.log)"
        run 0 plan "./own-$name.so" model.trial="$name" "$@" --json # not the experiment that may have the name
        before=$(field plan_hash)
        run 0 plan "./own-$name.so" "$@" --json
        is plan_hash "$before"
    done
}
mkdir -p own/trials && cp "$source"/src/trials/*.[ch] own/trials
own vit ls_trial_vit_tiny vit-tiny
own aae ls_trial_aae aae batch.per_rank=2
own cosmogan ls_trial_cosmogan cosmogan batch.per_rank=2
own cyclegan ls_trial_cyclegan cyclegan model.size=64 model.blocks=2

# --- a program by pkg-config ----------------------------------------------------------------------------------------------
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name lockstep.pc)")
    export PKG_CONFIG_PATH
    n=$((n + 2))
    [ "lockstep $(pkg-config --modversion lockstep)" = "$("$LOCKSTEP" --version)" ] || fail "pkg-config knows version $(pkg-config --modversion lockstep)"
    eval "cc -std=c17 -o two_losses '$source/examples/two_losses.c' $(pkg-config --cflags --libs lockstep)" 2>cc.log &&
        ./two_losses >out 2>&1 || fail "a program by pkg-config: $(head -5 cc.log out)"
fi

[ $failures -eq 0 ] && echo "test_plugin: $n checks passed"
exit $((failures > 0))
