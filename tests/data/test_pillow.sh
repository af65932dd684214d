#!/usr/bin/env bash
# Decoding, resizing and cropping against Pillow, which torchvision's transforms of PIL images call.
set -euo pipefail
python=/usr/bin/python3
if ! $python -c 'import PIL, numpy' 2>/dev/null; then
    echo "skipped: python3-pil or python3-numpy is not installed"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
$python "$(dirname "$0")/compare_pillow.py" "$LS_BUILD_DIR/tests/tools/image_dump" "$folder"
