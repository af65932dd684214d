#!/usr/bin/env bash
# `cmake --install`: every file arrives, the installed program works, its manual page is sound, and bash completes.
set -uo pipefail
: "${LS_BUILD_DIR:?the build folder}"
if [ ! -e "$LS_BUILD_DIR/tools/lockstep.1" ]; then
    echo "skipped: builds with a sanitizer are not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

if ! DESTDIR=$work cmake --install "$LS_BUILD_DIR" --prefix /usr >"$work/log" 2>&1; then
    echo "FAILED: cmake --install: $(tail -5 "$work/log")"
    exit 1
fi

# --- files ------------------------------------------------------------------------------------------
for file in bin/lockstep include/lockstep/lockstep.h include/lockstep/nn.h share/man/man1/lockstep.1 \
    share/bash-completion/completions/lockstep share/zsh/site-functions/_lockstep \
    share/fish/vendor_completions.d/lockstep.fish share/lockstep/experiments/fashion.yaml; do
    n=$((n + 1))
    [ -s "$work/usr/$file" ] || fail "$file is not installed"
done
find "$work/usr" -name liblockstep.a | grep -q . || fail "the library is not installed"
for file in experiments/*.yaml; do
    n=$((n + 1))
    cmp -s "$file" "$work/usr/share/lockstep/$file" || fail "$file is not installed"
done
program=$work/usr/bin/lockstep
"$program" --version | grep -q '^lockstep ' || fail "the installed program does not say its version"
(cd "$work" && LOCKSTEP_TUNE=off "$program" plan fashion) >"$work/out" 2>&1 || fail "plan of a shipped experiment: $(cat "$work/out")"

# A program outside needs headers and library, nothing else.
library=$(dirname "$(find "$work/usr" -name liblockstep.a | head -1)")
if cc -x c -std=c17 -I"$work/usr/include" -fsyntax-only - <<<'#include <lockstep/lockstep.h>' 2>"$work/out"; then
    n=$((n + 1))
else
    fail "the installed headers do not compile: $(head -5 "$work/out")"
fi
[ -n "$library" ] || fail "no library folder"

# --- manual page --------------------------------------------------------------------------------------
page=$work/usr/share/man/man1/lockstep.1
commands=$("$program" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for command in $commands; do
    n=$((n + 1))
    grep -q "^\.SS \"lockstep $command " "$page" || fail "the manual page lacks the command $command"
done
for text in 'optimizer.lr' 'train.on_nonfinite' 'EXIT STATUS' 'resnet18\\-cifar' 'LOCKSTEP_LOG'; do
    n=$((n + 1))
    grep -q -- "$text" "$page" || fail "the manual page lacks $text"
done
if command -v groff >/dev/null && command -v man >/dev/null; then
    n=$((n + 1))
    # Width 200: long words may stick out of narrow lines, which is not the page's fault.
    MANWIDTH=200 man --warnings -E UTF-8 -l -Tutf8 "$page" >"$work/page" 2>"$work/warnings" || fail "man cannot read the page"
    [ -s "$work/warnings" ] && fail "man warns: $(head -5 "$work/warnings")"
    sed -i 's/.\x08//g' "$work/page" # bold letters are printed twice
    grep -q 'train EXPERIMENT.*\[key=value ...\]' "$work/page" || fail "the page does not show how train is used"
else
    echo "no groff or man here: the page's form is not checked"
fi

# --- completion -----------------------------------------------------------------------------------------
bash -n "$work/usr/share/bash-completion/completions/lockstep" || fail "the completion is no bash"
if command -v zsh >/dev/null; then zsh -n "$work/usr/share/zsh/site-functions/_lockstep" || fail "the completion is no zsh"; fi
if command -v fish >/dev/null; then fish -n "$work/usr/share/fish/vendor_completions.d/lockstep.fish" || fail "the completion is no fish"; fi
# shellcheck disable=SC1091
. "$work/usr/share/bash-completion/completions/lockstep"

# offers LINE WORD...: what is offered at the end of LINE contains the words; a word that begins with '!' is not there.
offers() {
    local line=$1 word
    shift
    COMP_LINE=$line COMP_POINT=${#line}
    _lockstep
    for word in "$@"; do
        n=$((n + 1))
        if [ "${word:0:1}" = '!' ]; then
            [[ " ${COMPREPLY[*]} " != *" ${word:1} "* ]] || fail "\"$line\" offers ${word:1}"
        else
            [[ " ${COMPREPLY[*]} " == *" $word "* ]] || fail "\"$line\" does not offer $word but: ${COMPREPLY[*]}"
        fi
    done
}

cd "$work" || exit 1
touch mine.yaml
offers 'lockstep ' train plan bench info --help
offers 'lockstep tr' train '!plan'
offers 'lockstep train ' fashion mnist-10k cosmogan mine.yaml
offers 'lockstep train fas' fashion '!mnist'
offers 'lockstep train fashion --' --resume --run-dir --json '!--profile'
offers 'lockstep bench mnist --pro' --profile
offers 'lockstep train fashion opt' optimizer.lr= optimizer.name= '!seed='
offers 'lockstep train fashion --quiet train.on' train.on_nonfinite=
offers 'lockstep train fashion train.on_nonfinite=' stop skip warn
offers 'lockstep plan resnet18 model.cifar_stem=t' true '!false'
offers 'lockstep ckpt ' show verify export import '!fashion'
offers 'lockstep data info ki' kind= '!train.keep='
offers 'lockstep runs ' list show logs compare stop rm
(
    failures=0
    mkdir -p "$work/here/runs/mnist-1" && cd "$work/here" && mkdir 'runs/mnist-$(touch$IFS\obeyed)'
    offers 'lockstep runs show mn' mnist-1 '!last'
    offers 'lockstep runs show la' last
    [ -e obeyed ] && fail "a name was obeyed"
    exit "$failures"
) || failures=$((failures + 1))
mkdir own && touch own/special.yaml
LOCKSTEP_EXPERIMENTS=$work/own offers 'lockstep train sp' special

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
