"""The process in which srcML runs: frames in on standard input, frames out on standard output.

srcML crashes on some inputs and takes for ever on others, so it never runs in the process of
the caller. A request is a line with the language and a time limit, then the program; an answer is
the XML, empty where srcML refused. Each is preceded by its length in eight bytes. A program that
takes longer than its seconds ends the process, by an alarm that no stuck parser can ignore.
"""

import signal
import struct
import sys
from typing import IO

_LENGTH = struct.Struct("<q")


def send(stream: IO[bytes], data: bytes) -> None:
    """Write one frame."""
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one frame; nothing once the other side has gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    data = stream.read(size)
    return data if len(data) == size else None


def main() -> None:
    """Answer requests until standard input ends."""
    import srcml_caller

    from treecaps.workers import end_with_parent

    end_with_parent()
    while (request := receive(sys.stdin.buffer)) is not None:
        head, _, text = request.partition(b"\n")
        language, seconds = head.split()
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        xml = srcml_caller.to_srcml(
            text.decode(), getattr(srcml_caller.CodeLanguage, language.decode()), False
        )
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(sys.stdout.buffer, (xml or "").encode())


if __name__ == "__main__":
    main()
