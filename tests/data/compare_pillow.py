"""compare_pillow.py IMAGE_DUMP FOLDER: are decoded, resized and cropped images equal to Pillow's, byte by byte?

Writes images of many modes and sizes with Pillow into FOLDER, one folder per case, has them read by IMAGE_DUMP,
and does with Pillow what torchvision's Resize and CenterCrop do with PIL images.
"""
import os
import struct
import subprocess
import sys

import numpy
from PIL import Image

dump, root = sys.argv[1:]
random = numpy.random.RandomState(5)
failures = 0


def picture(mode, width, height):
    """Smooth waves with noise: something for every frequency."""
    channels = {"L": 1, "P": 3, "1": 1}.get(mode, len(mode))
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [128 + 80 * numpy.sin(x / (5.0 + 3 * c) + y / 11.0) + 40 * random.randn(height, width) for c in range(channels)]
    pixels = numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8)
    if mode in ("L", "1"):
        return Image.fromarray(pixels[:, :, 0], "L").convert(mode)
    image = Image.fromarray(pixels, "RGB" if mode == "P" else mode)
    return image.convert("P") if mode == "P" else image


def expected(path, channels, resize, crop):
    image = Image.open(path).convert("RGB" if channels == 3 else "L")
    width, height = image.size
    if resize:
        short, long = min(width, height), max(width, height)
        longer = int(resize * long / short)
        image = image.resize((resize, longer) if width <= height else (longer, resize), Image.BICUBIC)
        width, height = image.size
    if crop:
        top, left = int(round((height - crop) / 2.0)), int(round((width - crop) / 2.0))
        image = image.crop((left, top, left + crop, top + crop))
    pixels = numpy.asarray(image)
    return pixels[numpy.newaxis] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def check(name, files, channels, resize, crop):
    """files: (name, mode, size, options of save)."""
    global failures
    folder = os.path.join(root, name)
    os.makedirs(os.path.join(folder, "x"))
    for file, mode, size, options in files:
        picture(mode, *size).save(os.path.join(folder, "x", file), **options)
    out = subprocess.run([dump, folder, str(channels), str(resize), str(crop)], stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for file in sorted(f[0] for f in files):
        shape = struct.unpack_from("<3i", out, at)
        n = shape[0] * shape[1] * shape[2]
        got = numpy.frombuffer(out, numpy.uint8, n, at + 12).reshape(shape).astype(int)
        at += 12 + n
        want = expected(os.path.join(folder, "x", file), channels, resize, crop).astype(int)
        if want.shape != got.shape or abs(want - got).max() > 0:
            worst = abs(want - got).max() if want.shape == got.shape else "shape %s" % (want.shape,)
            print("failed: %s/%s, channels %d, resize %d, crop %d: largest difference %s" % (name, file, channels, resize, crop, worst))
            failures += 1
    if at != len(out):
        sys.exit("%d bytes too many" % (len(out) - at))


jpeg, png = {"format": "JPEG", "quality": 90}, {"format": "PNG"}
kinds = [("a", "RGB", jpeg), ("b", "L", jpeg), ("c", "CMYK", jpeg), ("d", "RGB", dict(jpeg, progressive=True)),
         ("e", "RGB", dict(jpeg, subsampling=0)), ("f", "RGB", png), ("g", "L", png), ("h", "P", png), ("i", "RGBA", png),
         ("j", "LA", png), ("k", "1", png)]
n = 0
for channels in (3, 1):
    check("plain-%d" % channels, [(k, mode, (61, 47), o) for k, mode, o in kinds], channels, 0, 0)
    n += len(kinds)
sizes = [(256, 256), (500, 375), (375, 500), (1024, 768), (80, 60), (33, 257), (300, 286)]
for resize, crop in ((286, 256), (256, 224), (40, 0), (16, 16)):
    for width, height in sizes:
        # One folder per size: without a crop all images must be equal.
        files = [("a", "RGB", (width, height), jpeg), ("b", "L", (width, height), png)]
        check("resize-%d-%d-%d" % (resize, width, height), files, 3, resize, crop)
        n += len(files)
print("%d images compared, %d differ" % (n, failures))
sys.exit(failures > 0)
