#!/usr/bin/env bash
# docs/settings.md is what the tables of settings say.
set -euo pipefail
cd "$(dirname "$0")/../.."
tool=${LS_BUILD_DIR:?the build folder}/tests/tools/settings_doc
if ! diff docs/settings.md <("$tool"); then
    echo "docs/settings.md is out of date; run: build/tests/tools/settings_doc >docs/settings.md"
    exit 1
fi
echo "$(grep -c '^| `' docs/settings.md) settings, all as in the tables"
