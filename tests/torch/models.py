"""The built-in models in PyTorch, written over a dict of named tensors.

Names, shapes and formulas are those of src/trials; the same definitions serve the comparison of numbers
(compare_steps.py) and of speed (bench/compare_torch.py).  `p` maps parameter and buffer names to tensors, `x` maps
inputs and injected random draws (of a dropout: what it multiplies by) to tensors; with `drop`, dropouts draw by themselves.  Each model returns [(loss, parameter prefixes it trains), ...] in the
order in which the updates happen, as generators where an update must come before the next loss is built.
"""
import torch
import torch.nn.functional as F


def bn(p, name, h):
    return F.batch_norm(h, p[name + ".running_mean"], p[name + ".running_var"], p[name + ".weight"],
                        p[name + ".bias"], training=True, momentum=0.1, eps=1e-5)


def linear(p, name, h):
    return F.linear(h, p[name + ".weight"], p[name + ".bias"])


def dropout(x, name, h, rate, drop, draw=F.dropout):
    return draw(h, rate) if drop else h * x[name]


def linear_classifier(p, x, drop=False):
    yield F.cross_entropy(linear(p, "fc", x["image"].flatten(1)), x["label"].long()), [""], "loss"


def mnist(p, x, drop=False):
    h = F.conv2d(x["image"], p["conv1.weight"], p["conv1.bias"])
    h = F.relu(F.max_pool2d(h, 2))
    h = F.conv2d(h, p["conv2.weight"], p["conv2.bias"])
    h = dropout(x, "conv2_drop", h, 0.5, drop, F.dropout2d)
    h = F.relu(F.max_pool2d(h, 2))
    h = F.relu(linear(p, "fc1", h.flatten(1)))
    h = dropout(x, "fc1_drop", h, 0.5, drop)
    yield F.cross_entropy(linear(p, "fc2", h), x["label"].long()), [""], "loss"


def mnist_keras(p, x, drop=False):
    h = F.relu(F.conv2d(x["image"], p["conv1.weight"], p["conv1.bias"]))
    h = F.relu(F.conv2d(h, p["conv2.weight"], p["conv2.bias"]))
    h = F.max_pool2d(h, 2)
    h = dropout(x, "drop1", h, 0.25, drop)
    h = F.relu(linear(p, "fc1", h.flatten(1)))
    h = dropout(x, "drop2", h, 0.5, drop)
    yield F.cross_entropy(linear(p, "fc2", h), x["label"].long()), [""], "loss"


def resnet18(p, x, drop=False):
    stem = p["conv1.weight"].shape[2]
    if stem == 7:
        h = F.conv2d(x["image"], p["conv1.weight"], stride=2, padding=3)
        h = F.max_pool2d(F.relu(bn(p, "bn1", h), inplace=True), 3, 2, 1)
    else:
        h = F.relu(bn(p, "bn1", F.conv2d(x["image"], p["conv1.weight"], padding=1)), inplace=True)
    for stage in range(1, 5):
        for block in range(2):
            n = f"layer{stage}.{block}."
            s = 2 if stage > 1 and block == 0 else 1
            g = F.relu(bn(p, n + "bn1", F.conv2d(h, p[n + "conv1.weight"], stride=s, padding=1)), inplace=True)
            g = bn(p, n + "bn2", F.conv2d(g, p[n + "conv2.weight"], padding=1))
            if n + "downsample.0.weight" in p:
                h = bn(p, n + "downsample.1", F.conv2d(h, p[n + "downsample.0.weight"], stride=s))
            h = F.relu(g + h, inplace=True)
    yield F.cross_entropy(linear(p, "fc", h.mean((2, 3))), x["label"].long()), [""], "loss"


def attention(p, name, h, heads):
    n, tokens, width = h.shape
    q, k, v = linear(p, name + ".qkv", h).view(n, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    share = (q @ k.transpose(-2, -1) * (width // heads) ** -0.5).softmax(-1)
    return linear(p, name + ".proj", (share @ v).transpose(1, 2).reshape(n, tokens, width))


def vit(p, x, drop=False, heads=12):
    def norm(name, h):
        return F.layer_norm(h, h.shape[-1:], p[name + ".weight"], p[name + ".bias"], eps=1e-6)

    w = p["patch_embed.proj.weight"]
    h = F.conv2d(x["image"], w, p["patch_embed.proj.bias"], stride=w.shape[2]).flatten(2).transpose(1, 2)
    h = torch.cat((p["cls_token"].expand(h.shape[0], -1, -1), h), 1) + p["pos_embed"]
    for i in range(sum(n.startswith("blocks.") and n.endswith(".norm1.weight") for n in p)):
        b = f"blocks.{i}."
        h = h + attention(p, b + "attn", norm(b + "norm1", h), heads)
        h = h + linear(p, b + "mlp.fc2", F.gelu(linear(p, b + "mlp.fc1", norm(b + "norm2", h))))
    yield F.cross_entropy(linear(p, "head", norm("norm", h)[:, 0]), x["label"].long()), [""], "loss"


def vit_tiny(p, x, drop=False):
    return vit(p, x, drop, heads=2)


def dcgan_generator(p, z):
    h = linear(p, "G.h0", z)
    channels = p["G.bn0.weight"].shape[0]
    side = int((h.shape[1] // channels) ** 0.5)
    h = F.relu(bn(p, "G.bn0", h.view(-1, channels, side, side)))
    for i in range(1, 5):
        # The adjoint of a 5x5 stride-2 convolution padded 1 before and 2 after: drop 1 row and column at the top and
        # left, 2 at the bottom and right, of the full result (2 * side + 3).
        h = F.conv_transpose2d(h, p[f"G.h{i}.weight"], p[f"G.h{i}.bias"], stride=2)[:, :, 1:-2, 1:-2]
        h = F.relu(bn(p, f"G.bn{i}", h)) if i < 4 else torch.tanh(h)
    return h


def dcgan_discriminator(p, h):
    for i in range(4):
        h = F.conv2d(F.pad(h, (1, 2, 1, 2)), p[f"D.h{i}.weight"], p[f"D.h{i}.bias"], stride=2)
        if i > 0:
            h = bn(p, f"D.bn{i}", h)
        h = F.leaky_relu(h, 0.2)
    return linear(p, "D.h4", h.flatten(1))


def bce(logits, target):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


def dcgan_d(p, x, drop=False):
    loss = bce(dcgan_discriminator(p, x["real"]), 1.0) + bce(dcgan_discriminator(p, x["fake"]), 0.0)
    yield loss, ["D."], "d_loss"


def dcgan_g(p, x, drop=False):
    yield F.mse_loss(dcgan_generator(p, x["z"]), x["target"]), ["G."], "g_loss"


def cosmogan(p, x, drop=False):
    """Simultaneous: both losses from one forward pass, both gradients before either update."""
    fake = dcgan_generator(p, x["z"])
    d_real, d_fake = dcgan_discriminator(p, x["image"]), dcgan_discriminator(p, fake)
    share = float(x.get("settings", {}).get("model.flip_labels", 0.01))
    flip = float(x["flip"].item() < share) if "flip" in x else 0.0
    d_loss = bce(d_real, 1.0 - flip) + bce(d_fake, flip)
    yield [(d_loss, ["D."], "d_loss"), (bce(d_fake, 1.0), ["G."], "g_loss")]


def mlp(p, prefix, h, n=5):
    for i in range(1, n + 1):
        h = linear(p, f"{prefix}.fc{i}", h)
        if i < n:
            h = F.relu(h)
    return h


def critic_loss(p, x, code):
    noise, mix = x["noise"], x["mix"]
    between = (noise + mix * (code - noise)).detach().requires_grad_(True)
    loss = mlp(p, "D", code).mean() - mlp(p, "D", noise).mean()
    g, = torch.autograd.grad(mlp(p, "D", between).sum(), between, create_graph=True)
    norm = (g.square().sum(1) + 1e-12).sqrt()
    return loss + 10.0 * (norm - 1).square().mean()


def wgan_gp(p, x, drop=False):
    yield critic_loss(p, x, x["code"]), ["D."], "loss_d"


def aae(p, x, drop=False):
    """Sequential: the critic's update comes before the second loss is built."""
    cloud = x["cloud"]
    h = cloud
    for i in range(1, 6):
        h = F.conv1d(h, p[f"E.conv{i}.weight"], p[f"E.conv{i}.bias"])
        if i < 5:
            h = F.relu(h)
    h = F.relu(linear(p, "E.fc", h.amax(2) if h.shape[2] == 1 else h.max(2)[0]))
    code = linear(p, "E.mu", h) + torch.exp(0.5 * linear(p, "E.logvar", h)) * x["eps"]
    yield critic_loss(p, x, code.detach()), ["D."], "loss_d"
    made = mlp(p, "G", code).view(-1, 3, cloud.shape[2])
    # As published: |q|^2 + |p|^2 - 2 q.p over all pairs of points.
    d = (cloud.square().sum(1)[:, :, None] + made.square().sum(1)[:, None, :]
         - 2 * torch.bmm(cloud.transpose(1, 2), made))
    rec = d.min(2)[0].sum() + d.min(1)[0].sum()
    sum_over = int(x.get("settings", {}).get("model.sum_over", 32))
    if sum_over:
        rec = rec * (sum_over / cloud.shape[0])
    yield 0.5 * rec - mlp(p, "D", code).mean(), ["E.", "G."], "loss_eg"


def conv_reflect(p, name, h):
    w = p[name + ".weight"]
    return F.conv2d(F.pad(h, (w.shape[2] // 2,) * 4, mode="reflect"), w, p[name + ".bias"])


def cyclegan_generator(p, g, h):
    def norm_relu(t):
        return F.relu(F.instance_norm(t), inplace=True)

    h = norm_relu(conv_reflect(p, g + ".in", h))
    for i in (1, 2):
        h = norm_relu(F.conv2d(h, p[f"{g}.down{i}.weight"], p[f"{g}.down{i}.bias"], stride=2, padding=1))
    for i in range(sum(n.startswith(g + ".res") and n.endswith(".conv1.weight") for n in p)):
        r = norm_relu(conv_reflect(p, f"{g}.res{i}.conv1", h))
        h = h + F.instance_norm(conv_reflect(p, f"{g}.res{i}.conv2", r))
    for i in (1, 2):
        h = F.interpolate(h, scale_factor=2)
        h = norm_relu(F.conv2d(h, p[f"{g}.up{i}.weight"], p[f"{g}.up{i}.bias"], padding=1))
    return torch.tanh(conv_reflect(p, g + ".out", h))


def cyclegan_discriminator(p, d, h):
    for i in range(1, 5):
        h = F.conv2d(h, p[f"{d}.conv{i}.weight"], p[f"{d}.conv{i}.bias"], stride=2, padding=1)
        h = F.leaky_relu(F.instance_norm(h) if i > 1 else h, 0.2)
    return F.conv2d(F.pad(h, (1, 0, 1, 0)), p[f"{d}.conv5.weight"], p[f"{d}.conv5.bias"], padding=1)


def replay(p, slots, name, fake):
    """The published buffer: stored and returned while there is room, then swapped or passed on, as the draws say."""
    images, filled = p[name + ".images"], p[name + ".filled"]
    shown = []
    for new, slot in zip(fake.detach(), slots.tolist()):
        if slot < 0 and (filled == 0).any():
            raise ValueError(f"{name}: a sample was not kept though there is room")
        if slot < 0 or filled[slot] == 0:
            shown.append(new)
        else:
            shown.append(images[slot].view_as(new).clone())
        if slot >= 0:
            images[slot] = new.flatten()
            filled[slot] = 1
    return torch.stack(shown)


def cyclegan(p, x, drop=False):
    """In the published order: generators first, then the discriminators on images made before that update."""
    def mse(t, target):
        return F.mse_loss(t, torch.full_like(t, target))

    a, b = x["image_a"], x["image_b"]
    identity = (F.l1_loss(cyclegan_generator(p, "G_BA", a), a) + F.l1_loss(cyclegan_generator(p, "G_AB", b), b)) / 2
    fake_b, fake_a = cyclegan_generator(p, "G_AB", a), cyclegan_generator(p, "G_BA", b)
    gan = (mse(cyclegan_discriminator(p, "D_B", fake_b), 1.0) + mse(cyclegan_discriminator(p, "D_A", fake_a), 1.0)) / 2
    cycle = (F.l1_loss(cyclegan_generator(p, "G_BA", fake_b), a) + F.l1_loss(cyclegan_generator(p, "G_AB", fake_a), b)) / 2
    yield gan + 10 * cycle + 5 * identity, ["G_AB.", "G_BA."], "loss_g"
    for d, pool, real, fake in (("D_A", "replay_a", a, fake_a), ("D_B", "replay_b", b, fake_b)):
        shown = replay(p, x[pool], pool, fake)
        yield ((mse(cyclegan_discriminator(p, d, real), 1.0) + mse(cyclegan_discriminator(p, d, shown), 0.0)) / 2,
               [d + "."], "loss_d_" + d[-1].lower())


def cyclegan_g(p, x, drop=False):
    yield F.l1_loss(cyclegan_generator(p, "G", x["image_a"]), x["image_b"]), ["G."], "loss_g"


MODELS = {
    "linear": linear_classifier, "vit": vit, "vit-b32": vit, "vit-tiny": vit_tiny,
    "mnist": mnist, "mnist-keras": mnist_keras, "resnet18": resnet18, "resnet18-cifar": resnet18,
    "resnet18-cifar-stem": resnet18, "dcgan-d": dcgan_d, "dcgan-g": dcgan_g, "cosmogan": cosmogan,
    "wgan-gp": wgan_gp, "aae": aae, "cyclegan": cyclegan, "cyclegan-g": cyclegan_g,
}
