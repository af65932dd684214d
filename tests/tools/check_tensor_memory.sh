#!/usr/bin/env bash
# check_tensor_memory.sh [ROOT]: does nobody but the executor and the backends know where tensors lie?
#
# Layers above hold handles (lockstep/plan.h) and use ls_tensor_read, _write, _copy, _zero, _visit, _fill.  Nothing else
# in src/, cmd/, examples/, bench/ or fuzz/ may name a buffer, ask for its address, or look into a tensor for it; tests
# may make buffers of memory of their own (ls_buffer_of_host), those of exec and backends may do anything.  Prints one
# line per violation and exits 1 when there is one.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

folders=()
for folder in src cmd examples bench fuzz tests; do
    [ -d "$folder" ] && folders+=("$folder")
done

# Comments may speak of it.  A member called `buffer` or `data` is a tensor's only where something that gives a tensor
# stands before it, or a variable that the file declares as one.
find "${folders[@]}" -name '*.[ch]' -not -path 'src/exec/*' -not -path 'src/backend/*' -not -path 'tests/exec/*' \
    -not -path 'tests/backend/*' -print0 | sort -z | xargs -0 awk '
function violation(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; n_bad++ }
FNR == 1 { split("", tensor); in_comment = 0 }
{
    line = $0
    if (in_comment) { if (!sub(/^.*\*\//, "", line)) next; in_comment = 0 }
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
    if (sub(/\/\*.*/, "", line)) in_comment = 1
    # Variables, arrays and parameters of type ls_tensor, also several in one declaration.
    rest = line
    if (match(rest, /(^|[^A-Za-z0-9_])ls_tensor[ *]/)) {
        rest = substr(rest, RSTART + RLENGTH - 1)
        while (match(rest, /^[ *,]*(const )?\**[A-Za-z_][A-Za-z0-9_]*/)) {
            name = substr(rest, 1, RLENGTH); sub(/^.*[ *,]/, "", name); tensor[name] = 1
            rest = substr(rest, RLENGTH + 1)
            if (!match(rest, /^( = [^,;(]*(\([^()]*\))?[^,;()]*)?, \*/)) break
            rest = substr(rest, RLENGTH)
        }
    }
    if (FILENAME !~ /^tests\//) {
        if (line ~ /(^|[^A-Za-z0-9_])ls_buffers?([^A-Za-z0-9_]|$)/) violation("names a buffer")
        if (line ~ /(^|[^A-Za-z0-9_])ls_(host_)?buffers?_[a-z]+/) violation("handles a buffer")
        if (line ~ /#[ \t]*include[ \t]*[<"]backend\/buffer.h/) violation("includes backend/buffer.h")
    }
    if (line ~ /(^|[^A-Za-z0-9_])ls_buffer_(address|host)([^A-Za-z0-9_]|$)/) violation("asks a buffer for its address")
    if (line ~ /[A-Za-z0-9_)\]](->|\.)(address|host_visible)([^A-Za-z0-9_]|$)/ && FILENAME ~ /^src\/(train|nn|ckpt|trials|bench|study)|^tests\/(train|nn|ckpt|ops|passes)/)
        violation("looks for an address")
    if (line ~ /ls_(plan_(input|fetch)(_at)?|state_(at|find))\([^;]*\)->(data|buffer|offset)([^A-Za-z0-9_]|$)/)
        violation("looks into a tensor for its memory")
    rest = line
    while (match(rest, /[A-Za-z_][A-Za-z0-9_]*(\[[^\]]*\])?(->|\.)(data|buffer|offset)([^A-Za-z0-9_]|$)/)) {
        name = substr(rest, RSTART, RLENGTH); before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
        before2 = RSTART > 2 ? substr(rest, RSTART - 2, 2) : ""
        sub(/[^A-Za-z0-9_].*/, "", name)
        if (name in tensor && before != "." && before2 != "->") violation("looks into tensor " name " for its memory")
        rest = substr(rest, RSTART + RLENGTH)
    }
}
END { exit n_bad > 0 }'
