#!/usr/bin/env python3
"""tensorboard_check.py FOLDER: loads a folder of event files with TensorBoard's own reader and prints the tags.

For a machine where the package `tensorboard` is installed; exit status 77 where it is not.  Exit status 1 when
TensorBoard finds nothing in the folder, or no hyperparameters where `--hparams` asks for them.
"""
import argparse
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--hparams", action="store_true", help="fail unless the hparams page has data")
    args = parser.parse_args()

    events = EventAccumulator(args.folder, size_guidance={"scalars": 0, "images": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    for tag in tags["scalars"]:
        points = events.Scalars(tag)
        print(f"scalar {tag}: {len(points)} points, step {points[0].step} to {points[-1].step}, last {points[-1].value:.9g}")
    for tag in tags["images"]:
        image = events.Images(tag)[-1]
        print(f"image {tag}: step {image.step}, {image.width} x {image.height}, {len(image.encoded_image_string)} bytes")
    for tag in tags["tensors"]:
        tensor = events.Tensors(tag)[-1]
        print(f"tensor {tag}: step {tensor.step}, {list(tensor.tensor_proto.string_val)[:1]}")
    try:
        content = events.PluginTagToContent("hparams")
    except KeyError:
        content = {}
    if content:
        from tensorboard.plugins.hparams import plugin_data_pb2

        for tag, data in sorted(content.items()):
            print(f"hparams {tag}: {plugin_data_pb2.HParamsPluginData.FromString(data)}")
    if not (tags["scalars"] or tags["images"] or tags["tensors"]):
        sys.exit("nothing was found")
    if args.hparams and not content:
        sys.exit("no hyperparameters were found")


main()
