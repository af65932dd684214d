#!/usr/bin/env bash
# Rules for the sources that a machine can check.  Each rule prints its violations.
set -euo pipefail
cd "$(dirname "$0")/../.."
failures=0

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    list() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }
else
    list() { find "$@" -type f -not -path './build*' 2>/dev/null; }
fi
mapfile -t sources < <(list CMakeLists.txt cmake include src cmd tests scripts check demo | sort)
mapfile -t code < <(printf '%s\n' "${sources[@]}" | grep -E '^(src|cmd|include)/.*\.[ch]$')

# rule NAME VIOLATIONS
rule() {
    if [ -z "$2" ]; then
        echo "ok: $1"
    else
        printf 'violated: %s\n%s\n' "$1" "$2"
        failures=$((failures + 1))
    fi
}

# The words are written in two parts so that this file does not break its own rule.
marks="TO""DO|FIX""ME|XX""X|HA""CK"
rule "no unfinished work is left in comments ($marks)" "$(grep -nwE "$marks" "${sources[@]}" || true)"

rule "no source file is longer than 800 lines" \
    "$(wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 800 { print $2 ": " $1 " lines" }')"

rule "no unbounded string functions (sprintf, strcpy, strcat, gets)" \
    "$(grep -nE '(^|[^a-z_])(v?sprintf|strcpy|strcat|gets)\(' "${code[@]}" || true)"

# Modules are libraries of their own, and free what the library they are made for hands them.
rule "memory outside src/base comes from base/alloc.h" \
    "$(printf '%s\n' "${code[@]}" | grep -v -e '^src/base/' -e '^src/[^/]*/module/' -e '^src/backend/cuda/module/' |
       xargs -r grep -nE '(^|[^a-zA-Z0-9_>.])(malloc|calloc|realloc|aligned_alloc|posix_memalign|strdup|free)\(' || true)"

rule "no code is switched off by #if 0" "$(grep -nE '^[ \t]*#[ \t]*if[ \t]+[01]([^0-9]|$)' "${code[@]}" || true)"

rule "every .c and .h opens with a comment" \
    "$(comm -23 <(printf '%s\n' "${code[@]}" | sort) <(awk 'FNR == 1 && /^\/\*/ { print FILENAME }' "${code[@]}" | sort))"

# A graph may start a kernel while those before it still run (docs/decisions/0042-early-kernels.md).
mapfile -t kernels < <(printf '%s\n' "${sources[@]}" | grep -E '^src/backend/cuda/.*\.(cu|cuh)$')
mapfile -t written < <(printf '%s\n' "${sources[@]}" | grep -E '^src/backend/cuda/[^/]*\.c$')
rule "every kernel for GPUs begins with lsi_wait()" \
    "$(awk '/__global__/ { at = FNR } at && begun { if ($0 !~ /^    lsi_wait\(\);/) print FILENAME ":" at; at = begun = 0 } at && /^\{/ { begun = 1 }' "${kernels[@]}"
       awk '/__global__/ { at = FNR } at && /\{\\n/ { text = $0; sub(/.*\{\\n/, "", text)
            if (text == "\"") getline text
            if (text !~ /^ *"? *lsi_wait\(\);/) print FILENAME ":" at; at = 0 }' "${written[@]}")"

# An error that was told and put up with would be that of the next launch (src/backend/cuda/module/device.c: lsi_cuda_enter).
mapfile -t module < <(printf '%s\n' "${sources[@]}" | grep -E '^src/backend/cuda/module/')
rule "CUDA's last error is asked for by lsi_cuda_enter() and LSI_LAUNCH alone, and kernels are launched by the latter or by calls that return an error" \
    "$(grep -nE 'cuda(GetLast|PeekAtLast)Error\(|<<<' "${module[@]}" |
       grep -vE '^src/backend/cuda/module/(launch\.cuh:[0-9]+: +(kernel<<<|const cudaError_t launched_ = )|device\.c:[0-9]+:    \(void\)|launch\.cuh:[0-9]+:/\*)' || true)"

# What a trial needs, everybody's trial may use.  Three files of the folder are not trials.
mapfile -t trials < <(printf '%s\n' "${code[@]}" | grep -E '^src/trials/' | grep -vE '/(config|registry|plugin)\.[ch]$')
rule "trials include the public headers only (and trials/trials.h)" \
    "$(grep -nE '^#include "' "${trials[@]}" | grep -vE '"(lockstep/[a-z]+|trials/trials)\.h"' || true)"
rule "no trial is longer than 300 lines" "$(wc -l "${trials[@]}" | awk '$2 != "total" && $1 > 300 { print $2 ": " $1 " lines" }')"

rule "README.md lists the packages of scripts/setup, and no others" \
    "$(diff <(scripts/setup --list | awk '{ print $2, $1, $3 == "must" ? "yes" : "no" }' | sort) \
            <(awk -F' *[|] *' '$3 == "build" || $3 == "test" || $3 == "demo" { gsub("`", "", $2); print $2, $3, $4 }' README.md | sort) || true)"

# Who waits for another process leaves it the core (cli_lib.sh: breathe).
rule "no script waits in a loop that keeps a core busy" \
    "$(list tests scripts bench demo check | grep -E '\.sh$|^(scripts|check|demo)' | xargs -r grep -nE '(while|until) .*; do (:|true); done' || true)"

# A slip of a redirection has made files before that are called like a line of output.
mapfile -t names < <(list . | sed 's,^\./,,')
rule "names of files are letters, digits, '.', '_', '-' and '+', begin with none of '-', '=', and are no longer than 80" \
    "$(printf '%s\n' "${names[@]}" | grep -vE '^([A-Za-z0-9._+][A-Za-z0-9._+-]{0,79})(/[A-Za-z0-9._+][A-Za-z0-9._+-]{0,79})*$' || true)"

rule "kept inputs of fuzz targets are one archive a target (scripts/fuzz --add TARGET FILE...)" \
    "$(printf '%s\n' "${names[@]}" | grep '^fuzz/corpus/' | grep -vE '^fuzz/corpus/fuzz_[a-z0-9_]+\.tar\.gz$' || true
       for f in fuzz/fuzz_*.c; do [ -f "fuzz/corpus/$(basename "$f" .c).tar.gz" ] || echo "$f: no kept inputs"; done)"

# What is left in a build folder of a test that has another name now would hide that a script still calls the old one.
mapfile -t callers < <(list tests scripts docs | grep -E '\.(sh|py|md)$')
mapfile -t called < <(awk '
    FNR == 1 { split("", folders) }
    { gsub(/\$\{LS_BUILD_DIR:\?[^}]*\}/, "$LS_BUILD_DIR"); gsub(/["{}]/, "") }
    /^[a-z_]+=\$LS_BUILD_DIR\/tests\/[a-z]+$/ { folders[substr($0, 1, index($0, "=") - 1)] = substr($0, index($0, "=") + 1); next }
    {
        for (name in folders) gsub("[$]" name "/", folders[name] "/")
        while (match($0, /([$]LS_BUILD_DIR|build[a-z-]*)\/tests\/[a-z]+\/[a-z0-9_]+/)) {
            path = substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
            print FILENAME ":" FNR " " substr(path, index(path, "/tests/") + 1)
        }
    }' "${callers[@]}")
rule "every program of the tests that a script or a page calls has a source" \
    "$([ ${#called[@]} -ge 15 ] || echo "only ${#called[@]} calls were found"
       for c in "${called[@]}"; do [ -f "${c#* }.c" ] || echo "${c%% *}: there is no ${c#* }.c"; done)"

[ "$failures" -eq 0 ]
