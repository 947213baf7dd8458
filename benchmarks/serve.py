"""How many requests a server answers, how soon, and how much memory it takes, on loopback.

    python benchmarks/serve.py --data atlas/val.jsonl.gz --json

Starts two servers, one that looks at what waits together and one that does not (``--batch 1``), and
lets clients ask them in turns; each client asks for the class of one program after the other, on a
connection that it keeps. ``cpu_ms`` is what a request costs the server's process, parsers not
counted: unlike the rest, it hardly depends on what else the machine does. Then the first server
answers many requests more, and its memory is looked at.
"""

import argparse
import asyncio
import gzip
import json
import random
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from origin import origin

from treecaps.models.bundled import DEFAULT

CLIENTS = (1, 16, 128)
SIDES = {"batched": (), "unbatched": ("--batch", "1")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=20_000, help="for memory; 0 for none")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    bodies = read_bodies(options.data, options.programs)
    rounds: dict[str, dict[int, list[dict[str, float]]]] = {
        side: {clients: [] for clients in CLIENTS} for side in SIDES
    }
    with ExitStack() as stack:
        ports = {
            side: start(stack, ["--model", options.model, *words]) for side, words in SIDES.items()
        }
        for port in ports.values():
            asyncio.run(ask_for(port, bodies, 16, 3))
        for _ in range(options.rounds):
            for clients in CLIENTS:
                for side, port in ports.items():
                    before = figure(port, "process_cpu_seconds_total")
                    taken = asyncio.run(ask_for(port, bodies, clients, options.seconds))
                    busy = figure(port, "process_cpu_seconds_total") - before
                    # All in flight at the end were worked on too.
                    found = summarise(taken, options.seconds)
                    found["cpu_ms"] = round(1000 * busy / (len(taken) + clients), 2)
                    rounds[side][clients].append(found)
                    print(clients, side, found, file=sys.stderr)
        memory = measure_memory(ports["batched"], bodies, options.requests)
    result = {
        "data": options.data.parent.name,
        "model": options.model,
        "programs": len(bodies),
        "clients": {
            clients: {
                **{side: middle(rounds[side][clients]) for side in SIDES},
                "ratio": spread(
                    [
                        one["requests_per_second"] / other["requests_per_second"]
                        for one, other in zip(
                            *(rounds[side][clients] for side in SIDES), strict=True
                        )
                    ]
                ),
            }
            for clients in CLIENTS
        },
        "memory": memory,
        "rounds": rounds,
        **origin(),
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for clients in CLIENTS:
        print(clients, json.dumps(result["clients"][clients]))
    print(json.dumps(memory))


def read_bodies(data: Path, most: int) -> list[bytes]:
    """Return programs as the bodies of requests."""
    with gzip.open(data, "rt", encoding="utf-8") as file:
        lines = list(file)
    chosen = random.Random(0).sample(lines, min(most, len(lines)))
    programs = map(json.loads, chosen)
    return [
        json.dumps({"code": one["code"], "language": one["language"]}).encode() for one in programs
    ]


def start(stack: ExitStack, words: list[str]) -> int:
    """Start a server, which ends with the stack, and return its port."""
    script = "from treecaps.cli.main import run; run()"
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", script, "serve", "--port", "0", *words],
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    stack.callback(process.terminate)
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
    if not found:
        raise SystemExit("the server did not start")
    return int(found[1])


async def ask_for(
    port: int, bodies: list[bytes], clients: int, seconds: float, most: float = float("inf")
) -> list[float]:
    """Let clients ask for some time, or so many times, and return how long each answer took.

    Those that come after the end do not count.
    """
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def ask(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = number * 97
        while time.perf_counter() < end and len(taken) < most:
            body = bodies[turn % len(bodies)]
            turn += clients * 97 + 1
            begun = time.perf_counter()
            writer.write(
                b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(head.decode())
            length = re.search(rb"content-length: (\d+)", head)
            assert length is not None
            await reader.readexactly(int(length[1]))
            if (now := time.perf_counter()) < end:
                taken.append(now - begun)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*map(ask, range(clients)))
    return taken


def summarise(taken: list[float], seconds: float) -> dict[str, float]:
    """Return requests a second, and percentiles in milliseconds."""
    half, most, nearly_all = np.percentile(taken, [50, 95, 99]) * 1000
    return {
        "requests_per_second": round(len(taken) / seconds, 1),
        "p50_ms": round(half, 1),
        "p95_ms": round(most, 1),
        "p99_ms": round(nearly_all, 1),
    }


def middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: round(median(one[name] for one in rounds), 1) for name in rounds[0]}


def spread(values: list[float]) -> dict[str, float]:
    """Return the median of values, and the ends."""
    return {
        "median": round(median(values), 2),
        "least": round(min(values), 2),
        "most": round(max(values), 2),
    }


def measure_memory(port: int, bodies: list[bytes], requests: int) -> dict[str, Any]:
    """Return the megabytes of a server that has answered a tenth of some requests, and all."""
    if not requests:
        return {}
    asyncio.run(ask_for(port, bodies, 128, 1e9, requests // 10))
    early = figure(port, "process_resident_memory_bytes") / 1e6
    print("memory", early, file=sys.stderr)
    asyncio.run(ask_for(port, bodies, 128, 1e9, requests - requests // 10))
    late = figure(port, "process_resident_memory_bytes") / 1e6
    return {
        "requests": [requests // 10, requests],
        "megabytes": [round(early, 1), round(late, 1)],
        "growth": round(late / early - 1, 4),
    }


def figure(port: int, name: str) -> float:
    """Return what a server tells of itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    found = re.search(rf"^{name} (\S+)", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


if __name__ == "__main__":
    main()
