"""The compiled competition against the one in PyTorch, in twice the precision."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from treecaps.nn import compilation, top_k_routing
from treecaps.nn.compiled_routing import CompiledCompetition
from treecaps.nn.top_k_routing import Competition, TopKRouting


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("row_bounds", "static_bounds", "size"),
    [
        ([0, 1], [0, 1], 1),
        ([0, 0], [0, 0], 2),
        ([0, 7], [0, 3], 2),
        ([0, 8], [0, 600], 3),
        ([0, 41, 41, 60, 61], [0, 1100, 1100, 1500, 1503], 8),
        ([0, 3, 100], [0, 20, 37], 16),
    ],
)
@pytest.mark.parametrize("longest", [1.0, 7.7])  # products up to 60, where the compiled one ends
def test_it_equals_the_one_in_pytorch(
    threads: int, row_bounds: list[int], static_bounds: list[int], size: int, longest: float
) -> None:
    rows, statics = row_bounds[-1], static_bounds[-1]
    bounds = (np.array(row_bounds), np.array(static_bounds))
    torch.manual_seed(rows)
    units, total = (
        longest * torch.nn.functional.normalize(torch.randn(count, size))
        for count in (rows, statics)
    )
    times, copies = (torch.randint(1, 5, (count,)).float() for count in (rows, statics))
    gradient = torch.randn(statics, size)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = run(CompiledCompetition, bounds, units, times, total, copies, gradient)
    finally:
        torch.set_num_threads(before)
    doubles = [one.double() for one in (units, times, total, copies, gradient)]
    expected = run(Competition, bounds, *doubles)
    for ours, theirs in zip(found, expected, strict=True):
        scale = theirs.abs().amax().clamp(min=1) if len(theirs) else 1
        torch.testing.assert_close(ours.double() / scale, theirs / scale, rtol=1e-5, atol=1e-5)


def run(
    function: type[torch.autograd.Function], bounds: top_k_routing.Bounds, *values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    units, times, total, copies, gradient = values
    total = total.clone().requires_grad_()
    sums = function.apply(units, times, total, copies, bounds)  # type: ignore[no-untyped-call]
    return sums.detach(), torch.autograd.grad(sums, total, gradient)[0]


@pytest.mark.parametrize(
    ("changes", "compiled"),
    [
        ({}, True),
        ({"scale": 30.0}, False),  # products that would overflow
        ({"scale": float("nan")}, False),
        ({"stop": False}, False),  # routed capsules need a gradient
        ({"dtype": torch.float64}, False),
    ],
)
def test_it_is_taken_where_it_can_be(
    changes: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    real: Any = CompiledCompetition.apply

    def apply(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(CompiledCompetition, "apply", apply)
    options: dict[str, Any] = {"scale": 1.0, "stop": True, "dtype": torch.float32} | changes
    capsules = torch.randn(5, 3, 2, dtype=options["dtype"]) * options["scale"]
    layer = TopKRouting(4, routed=4, stop_gradient=options["stop"])
    count = torch.ones(5, dtype=capsules.dtype)
    layer(capsules.requires_grad_(), torch.arange(5), count, count, [0, 5])
    assert bool(calls) is compiled


def test_without_numba_pytorch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    capsules, count = torch.randn(6, 3, 2), torch.tensor([1.0, 2, 1, 1, 3, 1])
    layer = TopKRouting(4, routed=5, stop_gradient=True)
    arguments = (capsules, torch.arange(6), count, count, [0, 6])
    with_numba = layer(*arguments)
    monkeypatch.setattr(top_k_routing, "find_compiled", lambda _: None)
    monkeypatch.setattr(CompiledCompetition, "apply", None)
    torch.testing.assert_close(layer(*arguments), with_numba, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("by_coordinate", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_are_those_that_pytorch_finds(
    by_coordinate: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    units = torch.randn(40, 3, 5, dtype=dtype)
    keys = units if by_coordinate else units.square().sum(1, keepdim=True)
    count = torch.randint(1, 4, (40,)).to(dtype)
    arguments = (units, keys, count, [0, 25, 26, 26, 40], 7, 30)
    found = top_k_routing._choose(*arguments)
    monkeypatch.setattr(top_k_routing, "find_compiled", lambda _: None)
    for ours, theirs in zip(found, top_k_routing._choose(*arguments), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other)


def test_a_program_without_nodes_has_static_capsules_of_nothing() -> None:
    layer = TopKRouting(4, routed=5)
    capsules, count = torch.randn(3, 2, 2), torch.zeros(3)
    assert not layer(capsules, torch.arange(3), count, count, [0, 3]).any()


def test_what_is_compiled_is_kept_on_disk(tmp_path: Path) -> None:
    script = """
import numpy as np
import torch
from treecaps.nn import compiled_routing as c
total = torch.randn(5, 2, requires_grad=True)
bounds = (np.array([0, 4]), np.array([0, 5]))
units, times, copies = torch.randn(4, 2), torch.ones(4), torch.ones(5)
c.CompiledCompetition.apply(units, times, total, copies, bounds).sum().backward()
print(sum(c._compete.stats.cache_hits.values()))
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert printed == [["0"], ["2"]]


def test_where_numba_does_not_work_pytorch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise RuntimeError(f"cannot cache {name}")

    compilation.find_compiled.cache_clear()
    monkeypatch.setattr(compilation, "import_module", fail)
    try:
        capsules, count = torch.randn(6, 3, 2), torch.ones(6)
        layer = TopKRouting(4, routed=5, stop_gradient=True)
        assert layer(capsules, torch.arange(6), count, count, [0, 6]).isfinite().all()
        assert compilation.find_compiled("compiled_routing") is None
    finally:
        compilation.find_compiled.cache_clear()
