"""The network for one tree at a time, with capsules for every node: slow and obvious."""

import math
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import torch
import xxhash
from torch import Tensor

from treecaps.data.vocabulary import Vocabulary
from treecaps.models.treecaps import TreeCaps
from treecaps.models.treecaps_config import TreeCapsConfig
from treecaps.nn.token_capsules import TokenCapsules
from treecaps.nn.tree_convolution import TreeConvolution
from treecaps.syntax.names import is_name
from treecaps.syntax.subtokens import split_token
from treecaps.syntax.tree import Tree


class Nodes(NamedTuple):
    """A tree as the naive network wants it: kinds, sub-tokens, and who is in whose window."""

    kind: Tensor
    tokens: list[tuple[int, ...]]
    window: Tensor
    member: Tensor
    weights: Tensor  # [M, 3]
    words: list[bytes]  # of the leaves, in order


def nodes_of(tree: Tree, vocabulary: Vocabulary, depth: int) -> Nodes:
    """Walk down from every node, by the book."""
    children: list[list[int]] = [[] for _ in range(len(tree))]
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            children[parent].append(node)
    rows: list[tuple[int, int, float, float, float]] = []
    for top in range(len(tree)):
        stack = [(top, depth, 0.0)]
        while stack:
            node, d_i, place = stack.pop()
            eta_t = (d_i - 1) / (depth - 1)
            eta_r = (1 - eta_t) * place
            eta_l = (1 - eta_t) * (1 - eta_r)
            rows.append((top, node, eta_t, eta_l, eta_r))
            if d_i == 1:
                continue
            k = len(children[node])
            for p, child in enumerate(children[node], 1):
                stack.append((child, d_i - 1, 0.5 if k == 1 else (p - 1) / (k - 1)))
    kind = [vocabulary.number(name) for name in tree.kind_names()]
    tokens: list[tuple[int, ...]] = [()] * len(tree)
    for node, name in enumerate(tree.kind_names()):
        text = tree.token(node).encode()
        if text and not name.startswith('"'):
            tokens[node] = tuple(
                vocabulary.number_token(part) for part in split_token(text, name=is_name(name))
            )
    words = []
    for node, name in enumerate(tree.kind_names()):
        word = tree.text[tree.start[node] : tree.end[node]]
        if word and not any(tree.parent == node):
            if is_name(name):
                word = " ".join(split_token(word, name=True)).encode()
            elif name.startswith('"'):  # the kind says the text
                word = name[1:-1].encode()
            words.append(word)
    return Nodes(
        torch.tensor(kind),
        tokens,
        torch.tensor([row[0] for row in rows]),
        torch.tensor([row[1] for row in rows]),
        torch.tensor([row[2:] for row in rows], dtype=torch.float64),
        words,
    )


def squash(u: Tensor, form: str) -> Tensor:
    """As printed, and as Sabour et al. have it."""
    norm = u.norm(dim=-1, keepdim=True)
    if form == "printed":
        return torch.where(norm > 0, norm**2 / (norm**2 + 1) * u / norm**2, 0 * u)
    return torch.where(norm > 0, norm**2 / (norm**2 + 1) * u / norm, 0 * u)


def convolve(layer: TreeConvolution, x: Tensor, nodes: Nodes) -> Tensor:
    """One vector for each node and slice, [T, slices, V']."""
    size = x.shape[1]
    weight = layer.weight.view(3, size, -1)
    y = layer.bias.expand(len(x), -1)
    for part in range(3):
        eta = nodes.weights[:, part : part + 1].to(x.dtype)
        summed = torch.zeros_like(x).index_add(0, nodes.window, eta * x[nodes.member])
        y = y + summed @ weight[part]
    return y.tanh().view(len(x), layer.slices, layer.channels)


def variable_to_static(
    u: Tensor,
    m: Tensor,
    a: int,
    b: int | None,
    r: int,
    form: str,
    distinct: bool = False,
    stop: bool = False,
) -> tuple[Tensor, Tensor]:
    """Algorithm 1, line by line, for capsules [N, D] that each count m times in the sum."""
    order = u.norm(dim=1).argsort(descending=True, stable=True)
    starts = order
    if distinct:
        seen: list[int] = []
        for i in order.tolist():
            if not any(torch.equal(u[i], u[j]) for j in seen):
                seen.append(i)
            if len(seen) == a:
                break
        starts = torch.tensor(seen)
    v = u[starts[:a]]
    chosen = order[:b]
    u, m = u[chosen], m[chosen]
    if stop:
        u, m = u.detach(), m.detach()
    alpha = torch.zeros(len(u), len(v), dtype=u.dtype)
    beta = alpha
    for _ in range(r):
        alpha = alpha + u @ v.T
        beta = alpha.softmax(1)
        v = squash(beta.T @ (m[:, None] * u), form)
    return torch.cat([v, v.new_zeros(a - len(v), v.shape[1])]), beta


def published_routing(u: Tensor, config: TreeCapsConfig) -> Tensor:
    """Route capsules [T, C, D] of all nodes to static capsules [C a, D] as the authors' code does.

    Starts and routed capsules are the largest of each channel, by coordinate or by length. All
    static capsules compete for each routed one, or those of its channel alone.
    """

    def largest(channel: int, count: int) -> Tensor:
        mine = u[:, channel]
        if config.by_coordinate:
            columns = [mine[:, d].sort(descending=True).values[:count] for d in range(u.shape[2])]
            return torch.stack(columns, 1)
        return mine[mine.norm(dim=1).argsort(descending=True, stable=True)[:count]]

    a, b = config.statics, config.routed or len(u)
    starts = [largest(channel, a) for channel in range(u.shape[1])]
    routed = [largest(channel, b) for channel in range(u.shape[1])]
    if config.joint:
        starts, routed = [torch.cat(starts)], [torch.cat(routed)]
    found = []
    for start, w in zip(starts, routed, strict=True):
        rows, v = w.detach() if config.stop_routed else w, start
        alpha = torch.zeros(len(rows), len(v), dtype=u.dtype)
        for _ in range(config.static_iterations):
            alpha = alpha + rows @ v.T
            v = squash(alpha.softmax(1).T @ rows, config.squash)
        found.append(v)
    capsules = torch.cat(found).view(u.shape[1], -1, u.shape[2])
    missing = a - capsules.shape[1]
    return torch.nn.functional.pad(capsules, (0, 0, 0, missing)).flatten(0, 1)


def route(
    predictions: Tensor, t: int, form: str, bias: Tensor | None = None, stop: bool = False
) -> tuple[Tensor, Tensor]:
    """Algorithm 2, line by line, for predictions [J, M, D].

    With ``stop``, nothing is learned through the coefficients: they are computed from predictions
    without a gradient, and only the last sum is one of predictions with theirs.
    """
    b = torch.zeros_like(predictions[0]) if bias is None else bias
    delta = predictions.new_zeros(predictions.shape[:2])
    gamma, z = delta, delta
    for iteration in range(t):
        gamma = delta.softmax(1)
        inner = stop and iteration < t - 1
        votes, shift = (predictions.detach(), b.detach()) if inner else (predictions, b)
        z = squash((gamma[:, :, None] * votes).sum(0) + shift, form)
        seen = predictions.detach() if stop else predictions
        delta = delta + (seen * z).sum(2)
    return z, gamma


def mix(value: int, salt: int) -> int:
    """The finisher of splitmix64, with whole numbers of any size."""
    golden, every = 0x9E3779B97F4A7C15, (1 << 64) - 1
    mixed = (value + salt * golden + golden) & every
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & every
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & every
    mixed ^= mixed >> 31
    return mixed - (1 << 64) if mixed >> 63 else mixed


def token_capsules(layer: TokenCapsules, words: list[bytes], form: str) -> Tensor:
    """Add up the capsules of known words and of up to three neighbours, each channel by itself."""
    hashes = [xxhash.xxh3_64_intdigest(word) - (1 << 63) for word in words]
    pairs = [mix(one, two) for one, two in pairwise(hashes)]
    triples = [mix(two, three) for two, three in zip(pairs, hashes[2:], strict=False)]
    features = Counter(hashes + pairs + triples)
    known = {feature: place for place, feature in enumerate(layer.known.tolist())}
    total = torch.zeros(layer.channels, layer.size, dtype=layer.vectors.dtype)
    for feature, times in features.items():
        if feature in known:
            y = (layer.linear.weight @ layer.vectors[known[feature]] + layer.linear.bias).tanh()
            total = total + (1 + math.log(times)) * squash(y.view(layer.size, -1).T, form)
    return squash(total, form)


def naive_forward(network: TreeCaps, nodes: Nodes) -> tuple[Tensor, Tensor, Tensor]:
    """Return the code capsules, the coupling to them and the static capsules of one tree."""
    config = network.config
    x = network.vectors[nodes.kind]
    if network.token_vectors is not None:
        none = torch.zeros_like(x[0])
        words = [network.token_vectors[list(t)].mean(0) if t else none for t in nodes.tokens]
        x = x + torch.stack(words)
    for layer in network.hidden:
        y = convolve(layer, x, nodes)[:, 0]  # type: ignore[arg-type]
        x = x + y if config.residual and x.shape == y.shape else y
    y = convolve(network.primary, x, nodes)
    gate = scale = torch.ones(len(x), dtype=x.dtype)
    if network.gate is not None:
        gate = torch.nn.functional.softplus(network.gate(y.flatten(1)))[:, 0]
    if config.gate_capsules:
        gate, scale = scale, gate
    if config.counts == "log":
        flat = y.flatten(1)
        equal = ((flat[:, None] - flat).abs().amax(2) < 1e-9).sum(1)
        gate = gate * (1 + equal.log()) / equal
    # [T, D, C] to one capsule after the other, [T, C, D].
    u = y.reshape(len(y), config.primary_size, -1).transpose(1, 2)
    if config.squash_primary:
        u = squash(u, config.squash)
    u = u * scale[:, None, None]
    channels = u.shape[1]
    if config.pooling == "max":
        static = u.flatten(0, 1).amax(0, keepdim=True)
    elif config.joint or config.by_coordinate:
        static = published_routing(u, config)
    else:
        options = (
            config.statics,
            config.routed,
            config.static_iterations,
            config.squash,
            config.distinct_starts,
            config.stop_routed,
        )
        if config.per_channel:
            parts = [variable_to_static(u[:, c], gate, *options)[0] for c in range(channels)]
        else:
            m = gate[:, None].expand(-1, channels).reshape(-1)
            parts = [variable_to_static(u.flatten(0, 1), m, *options)[0]]
        static = torch.cat(parts)
    if network.tokens is not None:
        static = torch.cat([static, token_capsules(network.tokens, nodes.words, config.squash)])
    below = static
    for layer in [layer for layer in (network.secondary, network.code) if layer is not None]:
        shape = (len(below), -1, layer.outputs, layer.output_size)
        weight = layer.weight.view(shape)
        if layer.whitening is not None:
            below = torch.einsum("ji,jik->jk", below, layer.whitening)
        predictions = torch.einsum("ji,jimd->jmd", below, weight)
        below, coupling = route(
            predictions, layer.iterations, config.squash, layer.bias, config.stop_gradients
        )
    return below, coupling, static
