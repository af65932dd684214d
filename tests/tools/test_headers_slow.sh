#!/usr/bin/env bash
# Every header compiles by itself; the public ones also as C++.  Not so *_template.h, which are bodies that a
# .c file includes after defining what they need.  Most are what some .c file begins with, so that every build compiles them by
# themselves, with the same warnings: the others are compiled here.
set -euo pipefail
cd "$(dirname "$0")/../.."
failures=0
n=0

# compiles HEADER COMMAND...
compiles() {
    local header=$1 output
    shift
    n=$((n + 1))
    if ! output=$(printf '#include "%s"\n' "$header" | "$@" -Iinclude -Isrc -Icmd -fsyntax-only - 2>&1) || [ -n "$output" ]; then
        printf '%s does not compile by itself (%s):\n%s\n' "$header" "$1" "$output"
        failures=$((failures + 1))
    fi
}

folders=(include src)
[ -d cmd ] && folders+=(cmd)
# Headers of the module for NVIDIA GPUs include those of CUDA's libraries, which not every machine has.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
without=()
[ -e "$cuda/cudnn.h" ] || { without=(-not -path 'src/backend/cuda/module/*') && echo "no cuDNN: headers of the module for NVIDIA GPUs are left out"; }
declare -A built
while read -r header; do built[$header]=yes; done < <(find src cmd -name '*.c' -not -path '*/module/*' | sort |
    xargs awk 'FNR == 1 { seen = 0 } !seen && /^#/ { seen = 1; if ($1 == "#include" && gsub(/"/, "", $2) == 2) print $2 }')
# Some headers are for vector kernels only, so the flags of those are on.
for header in $(find "${folders[@]}" -name '*.h' -not -name '*_template.h' "${without[@]}" | sort); do
    [ -n "${built[${header#*/}]:-}" ] || compiles "${header#*/}" cc -x c -std=c17 -D_GNU_SOURCE -mavx2 -mfma -mf16c -isystem "$cuda" -Wall -Wextra -Wconversion
done
if echo | c++ -x c++ -fsyntax-only - 2>/dev/null; then
    for header in include/lockstep/*.h; do
        compiles "${header#*/}" c++ -x c++ -std=c++17 -Wall -Wextra
    done
else
    echo "no C++ compiler: public headers checked as C only"
fi
echo "${#built[@]} headers are compiled by the build; $n compilations, $failures failed"
[ "$n" -ge 20 ] # otherwise it was looked for the wrong way
[ "$failures" -eq 0 ]
