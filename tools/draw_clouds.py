#!/usr/bin/python3
"""Draws clouds of a run of `aae` (model.keep_clouds=true) and their reconstructions, seen from the side, as a PNG file.

usage: tools/draw_clouds.py RUN OUT.png [--clouds 6] [--size 120]
The first row shows the clouds; each row below, their reconstructions at one of the epochs that the run has kept.
"""
import argparse
import glob
import os
import re

import numpy as np
from PIL import Image

GAP = 4


def epoch_of(path):
    return float(re.search(r"epoch-(.*)\.npy$", path).group(1))


def project(cloud, size):
    """A cloud (3, points) with coordinates in 0..1, turned a little so that depth shows; brightness counts points."""
    x, y, z = cloud - 0.5
    a = 0.5
    across, up = np.cos(a) * x - np.sin(a) * y, z + 0.3 * (np.sin(a) * x + np.cos(a) * y)
    picture = np.zeros((size, size))
    col, row = (((v * 0.8 + 0.5) * (size - 3)).astype(int).clip(0, size - 3) for v in (across, -up))
    for dy in range(3):
        for dx in range(3):
            np.add.at(picture, (row + dy, col + dx), 1.0 if dy == dx == 1 else 0.4)
    return (255 * (1 - np.exp(-picture))).astype(np.uint8)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("run")
    p.add_argument("out")
    p.add_argument("--clouds", type=int, default=6)
    p.add_argument("--size", type=int, default=120)
    a = p.parse_args()
    made = sorted(glob.glob(os.path.join(a.run, "reconstructions", "epoch-*.npy")), key=epoch_of)
    if not made:
        p.error(f"{a.run} has no reconstructions; train with model.keep_clouds=true")
    rows = [made[0].replace("reconstructions", "clouds")] + made
    step = a.size + GAP
    picture = Image.new("L", (a.clouds * step - GAP, len(rows) * step - GAP), 60)
    for y, path in enumerate(rows):
        clouds = np.load(path)
        for x in range(min(a.clouds, len(clouds))):
            picture.paste(Image.fromarray(project(clouds[x], a.size)), (x * step, y * step))
    picture.save(a.out, optimize=True)
    print(f"{a.out}: the clouds, then epochs " + ", ".join(f"{epoch_of(f):g}" for f in made))


if __name__ == "__main__":
    main()
