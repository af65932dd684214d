#!/usr/bin/env bash
# check_includes.sh [ROOT]: do all #includes point from a layer to itself or to a lower one?
#
# A folder of src/ is a layer; cmd/ is the highest.  Within src/backend a sub-folder (ref, cpu, ...) may include
# itself and the files directly in src/backend, never a sibling.  Headers named *_internal.h are for their own
# folder.  Prints one line per violation and exits 1 when there is one.
set -euo pipefail

# The one list of layers, lowest first.
layers="base tensor comm launch data events report graph ops passes backend exec plans ckpt nn trials config submit bench predict runs train study cmd"
# Public headers (include/lockstep/NAME) and the layer each belongs to; lockstep.h includes all the others.
public="status.h=base tensor.h=tensor graph.h=graph ops.h=ops plan.h=exec nn.h=nn trial.h=trials lockstep.h=trials"

cd "${1:-$(dirname "$0")/../..}"
folders=()
for folder in include src cmd; do
    [ -d "$folder" ] && folders+=("$folder")
done

find "${folders[@]}" -name '*.[ch]' -print0 | sort -z | xargs -0 awk -v layers="$layers" -v public="$public" '
function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
# The layer of a header as it is written in an #include, or "" when nobody knows it.
function layer_of_header(name,    part) {
    split(name, part, "/")
    if (part[1] == "lockstep") return part[2] in public_layer ? public_layer[part[2]] : ""
    return part[1] in level ? part[1] : ""
}
function layer_of_file(path,    part) {
    split(path, part, "/")
    if (part[1] == "include") return layer_of_header(part[2] "/" part[3])
    if (part[1] == "cmd") return "cmd"
    return part[2] in level ? part[2] : ""
}
function sub_backend(path,    part, n) {
    n = split(path, part, "/")
    return part[1] == "backend" && n > 2 ? part[2] : ""
}
function violation(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; n_bad++ }

BEGIN {
    n = split(layers, name, " ")
    for (i = 1; i <= n; i++) level[name[i]] = i
    n = split(public, pair, " ")
    for (i = 1; i <= n; i++) { split(pair[i], kv, "="); public_layer[kv[1]] = kv[2] }
}
FNR == 1 {
    n_files++
    mine = layer_of_file(FILENAME)
    if (mine == "") violation("belongs to no known layer (see the list in tests/tools/check_includes.sh)")
}
/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    header = $0
    sub(/^[^"<]*["<]/, "", header)
    sub(/[">].*$/, "", header)
    quoted = $0 ~ /include[ \t]*"/
    if (!quoted && header !~ /^lockstep\//) next
    n_includes++
    if (header !~ /\//) next   # a neighbour in the same folder
    theirs = layer_of_header(header)
    here = folder_of(FILENAME)
    sub(/^src\//, "", here)
    if (theirs == "") {
        violation("\"" header "\" belongs to no known layer")
    } else if (mine != "" && level[theirs] > level[mine]) {
        violation(mine " may not include " theirs ": \"" header "\"")
    } else if (header ~ /_internal\.h$/ && folder_of(header) != here) {
        violation("\"" header "\" is internal to " folder_of(header))
    } else if (sub_backend(here "/x") != "" && sub_backend(header) != "" && sub_backend(here "/x") != sub_backend(header)) {
        violation("backend/" sub_backend(here "/x") " may not include backend/" sub_backend(header) ": \"" header "\"")
    }
}
END {
    printf "%d files, %d includes of our own, %d violations\n", n_files, n_includes, n_bad
    exit n_bad > 0
}'
