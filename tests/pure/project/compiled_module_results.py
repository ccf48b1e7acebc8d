"""Prints the form of the hot modules and a digest of what they make of many batches.

Run as a program, once in each form: the digests must be equal. Damaged batches are among the input;
of an error its type and its text count.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial

from sparkmirror.compiled_modules import module_form
from sparkmirror.errors import BatchError
from sparkmirror.wire.batch import varint
from sparkmirror.wire.batch.checksum import assemble_batch
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import HEADER_BYTES, read_header
from sparkmirror.wire.batch.lanes.merge import SmallBatch, merge_batches
from sparkmirror.wire.batch.lanes.reopen import ReopenedBatch, reopen_batch
from sparkmirror.wire.batch.records import Record, build_batch, read_records
from sparkmirror.wire.batch.target_limits import TargetLimits

ROUNDS = 300


def outcome(work: Callable[[], object]) -> str:
    """What a call returns or raises, as text."""
    try:
        return repr(work())
    except (BatchError, ValueError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


def record(rng: random.Random, offset: int) -> Record:
    """A record of any kind."""
    return Record(
        offset=offset,
        timestamp=1_700_000_000_000 + rng.choice((0, 0, 1, -70, 9000, 40_000_000)),
        key=rng.choice((None, b"", rng.randbytes(rng.randrange(100)))),
        value=rng.choice((None, b"", rng.randbytes(rng.randrange(300)), bytes(9000))),
        headers=((b"name", None), (b"\xff", b"value"))[: rng.randrange(3)],
    )


def damaged(rng: random.Random, batch: bytes) -> bytes:
    """The batch with one other byte in its records, and the checksum of that."""
    body = bytearray(batch[HEADER_BYTES:])
    body[rng.randrange(len(body))] = rng.randrange(256)
    return assemble_batch(read_header(batch), body)


def reopened(batch: bytes, position: int, limit: int) -> list[object]:
    """The pieces of the reopen lane."""
    target = TargetLimits(max_message_bytes=limit)
    pieces = reopen_batch(read_header(batch), memoryview(batch), position, target)
    return [
        (piece.batch, piece.runs) if isinstance(piece, ReopenedBatch) else repr(piece)
        for piece in pieces
    ]


def merged(batches: list[bytes]) -> bytes:
    """The batches as one."""
    return bytes(merge_batches([SmallBatch(read_header(b), memoryview(b)) for b in batches]))


def results(rng: random.Random) -> Iterator[str]:
    """Everything that is compared."""
    for number in (0, 1, -1, 63, 64, 8191, 8192, 2**31, -(2**31), 2**63 - 1, -(2**63)):
        yield repr((varint.encode(number), varint.decode(varint.encode(number), 0)))
    for _ in range(ROUNDS):
        codec = rng.choice((CompressionType.NONE, CompressionType.LZ4))
        offset, consecutive = 0, []
        for _ in range(rng.randrange(1, 5)):
            held = [record(rng, offset + n) for n in range(rng.choice((1, 3, 70, 256)))]
            consecutive.append(build_batch(held))
            offset += len(held)
        with_gaps = build_batch([record(rng, 3 * n) for n in range(rng.randrange(1, 80))], codec)
        broken = damaged(rng, consecutive[-1])
        yield outcome(partial(merged, consecutive))
        yield outcome(partial(merged, [*consecutive[:-1], broken]))
        for batch in (with_gaps, broken):
            yield outcome(partial(read_records, read_header(batch), batch))
            limit = rng.choice((600, 10**6))
            yield outcome(partial(reopened, batch, rng.randrange(4), limit))


def main() -> None:
    """Print the form and the digest."""
    digest = hashlib.sha256()
    for result in results(random.Random(23)):
        digest.update(result.encode())
    form = "compiled" if module_form().is_compiled else "pure"
    sys.stdout.write(f"{form} {digest.hexdigest()}\n")


if __name__ == "__main__":
    main()
