"""compare_weights.py LOCKSTEP FOLDER: weights that PyTorch has made, in Lockstep.

Modules with torchvision's and timm's names are saved as safetensors by hand, with their counters of batches. `lockstep
infer` must give their outputs, and a few steps with frozen layers and a new head must end where PyTorch's do.
"""
import json
import os
import struct
import subprocess
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

TYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}


class Block(nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x):
        h = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(h + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """As torchvision's, with its names."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        sizes = [64, 64, 128, 256, 512]
        for i in range(1, 5):
            first = Block(sizes[i - 1], sizes[i], 1 if i == 1 else 2)
            setattr(self, f"layer{i}", nn.Sequential(first, Block(sizes[i], sizes[i], 1)))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for i in range(1, 5):
            h = getattr(self, f"layer{i}")(h)
        return self.fc(h.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5).softmax(-1)
        return self.proj((a @ v).transpose(1, 2).reshape(n, t, d))


class Layer(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(width, 1e-6), Attention(width, heads), nn.LayerNorm(width, 1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(width, mlp), nn.Linear(mlp, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(x))))


class Vit(nn.Module):
    """As timm's, with its names, in the size of `vit-tiny`."""

    def __init__(self, size=32, patch=8, width=64, depth=2, heads=2, mlp=128, classes=10):
        super().__init__()
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, width, patch, patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + (size // patch) ** 2, width))
        self.blocks = nn.ModuleList(Layer(width, heads, mlp) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, classes)

    def forward(self, x):
        h = self.patch_embed.proj(x).flatten(2).transpose(1, 2)
        h = torch.cat((self.cls_token.expand(len(x), -1, -1), h), 1) + self.pos_embed
        for b in self.blocks:
            h = b(h)
        return self.head(self.norm(h)[:, 0])


def save(path, state):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, t in state.items():
        raw = (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()
        header[name] = {"dtype": TYPES[t.dtype], "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def load(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + n]), raw[8 + n:]
    header.pop("__metadata__", None)
    return {k: torch.from_numpy(np.frombuffer(data[slice(*v["data_offsets"])], "<f4").reshape(v["shape"]).copy())
            for k, v in header.items()}


def disturb(model):
    """Statistics and norms that are not what every model begins with."""
    with torch.no_grad():
        for name, t in model.state_dict().items():
            if name.endswith("running_mean"):
                t.normal_(0, 0.3)
            elif name.endswith("running_var"):
                t.uniform_(0.5, 2)
            elif "norm" in name or "bn" in name:
                t.add_(torch.randn_like(t) * 0.1) if t.dtype == torch.float32 else t.fill_(7)
    return model


def close(what, got, want, limit):
    worst = float((got - want).abs().max() / want.abs().max())
    print(f"{what:44} {worst:.2e}")
    if not worst < limit:
        sys.exit(f"{what}: {worst:.2e} is more than {limit:.0e}")


def main(lockstep, folder):
    def run(*args):
        subprocess.run([lockstep, *args], check=True, stdout=subprocess.DEVNULL)

    torch.manual_seed(3)
    x, y = torch.randn(24, 3, 32, 32), torch.randint(0, 10, (24,))
    np.save(f"{folder}/x.npy", x.numpy())
    np.save(f"{folder}/y.npy", y.numpy().astype("i4"))
    sets = [f"data.{p}_{k}={folder}/{f}.npy" for p in ("train", "test") for k, f in (("images", "x"), ("labels", "y"))]
    data = ["data.kind=npy", *sets, "batch.per_rank=24", "--threads", "1"]

    for trial, model in (("resnet18-cifar", disturb(ResNet18())), ("vit-tiny", disturb(Vit()))):
        model.eval()
        file, out = f"{folder}/{trial}.safetensors", f"{folder}/{trial}.npy"
        for kind, limit in ((torch.float32, 2e-5), (torch.bfloat16, 2e-5)):
            with torch.no_grad():
                for p in model.parameters():
                    p.copy_(p.to(kind).float())  # what the narrow file holds
            state = {k: v.to(kind) if v.is_floating_point() and "running" not in k else v for k, v in model.state_dict().items()}
            save(file, state)
            run("infer", file, f"model.trial={trial}", *data, "--out", out)
            close(f"{trial}, {TYPES[kind]}: outputs", torch.from_numpy(np.load(out)), model(x).detach(), limit)

    # Five classes instead of ten: a new head is trained, everything else but the last layer's norms stands still.
    model = disturb(ResNet18())
    save(f"{folder}/ten.safetensors", model.state_dict())
    y = y % 5
    np.save(f"{folder}/y.npy", y.numpy().astype("i4"))
    settings = [*data, "model.classes=5", "train.init_skip=fc.*", "optimizer.name=sgd", "optimizer.momentum=0.9",
                "optimizer.weight_decay=0.01", "train.keep_best=0", "--quiet"]
    start, end = f"{folder}/start", f"{folder}/end"
    with open(f"{folder}/resnet.yaml", "w") as f:  # nothing of the experiment that ships
        f.write("model: {trial: resnet18-cifar}\n")
    init = [f"train.init={folder}/ten.safetensors"]
    frozen = "train.freeze=conv1.*,bn1.*,layer1.*,layer2.*,layer3.*,layer4.?.conv?.*,layer4.?.downsample.0.*"
    run("train", f"{folder}/resnet.yaml", *settings, *init, "train.steps=1", "optimizer.lr=0", "--run-dir", start)
    run("train", f"{folder}/resnet.yaml", *settings, *init, "train.steps=4", "optimizer.lr=0.05", frozen, "--run-dir", end)
    for r in (start, end):
        run("ckpt", "export", r, f"{r}.safetensors")
    first, last = load(f"{start}.safetensors"), load(f"{end}.safetensors")

    model.fc = nn.Linear(512, 5)
    with torch.no_grad():
        model.fc.weight.copy_(first["fc.weight"])
        model.fc.bias.copy_(first["fc.bias"])
    trained = [p for n, p in model.named_parameters() if n.startswith("fc.") or (n.startswith("layer4") and ("bn" in n or "downsample.1" in n))]
    for p in model.parameters():
        p.requires_grad_(any(p is t for t in trained))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    optimiser = torch.optim.SGD(trained, 0.05, momentum=0.9, weight_decay=0.01)
    model.train()
    for _ in range(4):
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()
    after = model.state_dict()
    for name in ("fc.weight", "fc.bias", "layer4.1.bn2.weight", "layer4.0.downsample.1.weight", "bn1.running_mean", "layer3.0.bn1.running_var"):
        close(f"frozen layers: {name}", last[name], after[name], 2e-4)
        if torch.equal(before[name], after[name]):
            sys.exit(f"{name}: did not move in PyTorch: nothing is compared")
    for name in ("conv1.weight", "layer3.1.bn2.weight", "layer4.1.conv2.weight", "layer4.0.downsample.0.weight"):
        if not torch.equal(last[name], before[name]):
            sys.exit(f"{name}: is frozen, and other bits")
    print("frozen parameters have their bits")


main(os.path.abspath(sys.argv[1]), sys.argv[2])
