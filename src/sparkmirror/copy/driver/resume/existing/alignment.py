"""Alignment: which source record is the last one that a remote partition holds. Pure.

    remote log   .. x a a a | f f            window: its last records
    source log   .. x a a a a a a y ..       part: where the copies were found

The last record of the window that the part holds is the last copied one; what follows it (f) is not
of this source. If several source records equal it (a), both logs are compared backwards, record by
record, until one candidate is left:

    - a candidate ends where the records before it differ
    - a window record that differs from what precedes every candidate is not of this source; it is
      left out
    - a hole (compaction) ends the comparison
    - an offset sync in the window leaves only the candidates that it confirms
    - if both logs begin at offset 0 and the mirror began at the earliest offset, the candidate
      whose comparison arrives at both beginnings at once is the right one

More than one candidate left means ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.copy.driver.resume.existing.log_part import LogPart, same_record

SURE_RUN = 16
"""So many equal records in a row prove a match whose timestamps cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """The last copied record: its offsets, and what is known about them."""

    source_offset: int
    target_offset: int
    following: int
    """Records of the remote partition after it: they are not of this source."""
    run: int
    """Equal records in a row, this one included, up to a difference or a hole."""
    is_proven: bool
    """Whether the run ends with the window, or is long and ends at a hole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousAlignment:
    """Several source records may be the last copied one."""

    target_offset: int
    first_source_offset: int
    last_source_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRules:
    """What is known besides the records."""

    synced_offsets: Mapping[int, int] = field(default_factory=dict)
    """Target offset → source offset, from offset syncs. They may be old: content decides."""
    is_source_start: bool = False
    """Whether the source part begins at offset 0 of the log."""
    is_target_start: bool = False
    """Whether the window begins at offset 0 of the log."""
    began_at_earliest: bool = True


def align(
    window: LogPart, part: LogPart, rules: AlignmentRules
) -> Alignment | AmbiguousAlignment | None:
    """Return the last record of the window that the source part holds; None if it has none."""
    by_content: dict[object, list[int]] = {}
    for index, record in enumerate(part.records):
        by_content.setdefault(record.content, []).append(index)
    for number in range(len(window.records) - 1, -1, -1):
        target = window.records[number]
        candidates = [
            index
            for index in by_content.get(target.content, ())
            if same_record(part.records[index], target)
        ]
        if candidates:
            return _Comparison(window, part, rules).decide(number, candidates)
    return None


@dataclass(slots=True)
class _Comparison:
    """Compares the records before a window record with those before its candidates."""

    window: LogPart
    part: LogPart
    rules: AlignmentRules

    def decide(self, number: int, candidates: list[int]) -> Alignment | AmbiguousAlignment:
        """Return the alignment of a window record with one of its candidates."""
        alive = set(candidates)
        if len(alive) > 1:
            alive = self._compare(number, candidates)
        offsets = [self.part.records[candidate].offset for candidate in sorted(alive)]
        target_offset = self.window.records[number].offset
        if len(alive) > 1:
            return AmbiguousAlignment(
                target_offset=target_offset,
                first_source_offset=offsets[0],
                last_source_offset=offsets[-1],
            )
        run, is_proven = self._run(number, next(iter(alive)))
        return Alignment(
            source_offset=offsets[0],
            target_offset=target_offset,
            following=len(self.window.records) - 1 - number,
            run=run,
            is_proven=is_proven,
        )

    def _compare(self, number: int, candidates: list[int]) -> set[int]:
        """Return the candidates that are left after comparing backwards."""
        unknown: set[int] = set()
        compared = {candidate: candidate for candidate in candidates}
        while compared:
            lengths = self._equal_lengths(number, compared)
            compared = self._confirmed(number, compared, lengths)
            longest = max(lengths[candidate] for candidate in compared)
            for candidate, index in compared.items():
                if self._is_unknown_before(index - lengths[candidate] + 1):
                    unknown.add(candidate)
            compared = {
                candidate: index - longest
                for candidate, index in compared.items()
                if lengths[candidate] == longest
            }
            number -= longest
            if number < 0:
                compared = self._beginning_together(compared)
                break
            if self.window.holes_before(number + 1) or len(compared | dict.fromkeys(unknown)) == 1:
                break
            compared = {c: index for c, index in compared.items() if c not in unknown}
            number -= 1  # this record differs from what precedes every candidate
            if number < 0:
                compared = self._beginning_together(compared)
                break
        return unknown | set(compared)

    def _equal_lengths(self, number: int, compared: Mapping[int, int]) -> dict[int, int]:
        """Count the equal records in a row, backwards, for each candidate; a hole ends them."""
        ids: dict[object, int] = {}
        window, _ = self._tokens(self.window, number, ids)
        part, places = self._tokens(self.part, max(compared.values()), ids)
        lengths = common_prefix_lengths(window, part)
        return {
            candidate: lengths[places[index]] if index >= 0 else 0
            for candidate, index in compared.items()
        }

    def _tokens(
        self, log: LogPart, last: int, ids: dict[object, int]
    ) -> tuple[list[int], dict[int, int]]:
        """Number the records from one backwards, equal ones alike and each hole by itself.

        Also returns where in the list each record is.
        """
        tokens: list[int] = []
        places: dict[int, int] = {}
        has_times = all(record.has_producer_time for record in self.window.records)
        for index in range(last, -1, -1):
            record = log.records[index]
            places[index] = len(tokens)
            key = (record.content, record.timestamp) if has_times else record.content
            tokens.append(ids.setdefault(key, len(ids)))
            if log.holes_before(index):
                tokens.append(ids.setdefault(object(), len(ids)))
        return tokens, places

    def _is_unknown_before(self, index: int) -> bool:
        """Whether it is unknown what precedes a source record."""
        if index >= len(self.part.records) or index < 0:
            return False
        is_unread = index == 0 and not self.rules.is_source_start
        return is_unread or self.part.holes_before(index) > 0

    def _confirmed(
        self, number: int, compared: dict[int, int], lengths: Mapping[int, int]
    ) -> dict[int, int]:
        """Keep the candidates that an offset sync of an equal record confirms, if it does."""
        for back in range(max(lengths[candidate] for candidate in compared)):
            synced = self.rules.synced_offsets.get(self.window.records[number - back].offset)
            confirmed = {
                candidate: index
                for candidate, index in compared.items()
                if synced is not None
                and lengths[candidate] > back
                and self.part.records[index - back].offset == synced
            }
            if confirmed:
                return confirmed
        return compared

    def _beginning_together(self, compared: dict[int, int]) -> dict[int, int]:
        """Keep the candidate whose comparison has passed the beginning of both logs."""
        rules = self.rules
        if not (rules.is_source_start and rules.is_target_start and rules.began_at_earliest):
            return compared
        if self.window.holes_before(0) or self.part.holes_before(0):
            return compared
        return {c: index for c, index in compared.items() if index < 0} or compared

    def _run(self, number: int, candidate: int) -> tuple[int, bool]:
        """Count equal records in a row, and decide whether they prove the candidate."""
        run = 1
        while number > 0 and candidate > 0:
            if self.window.holes_before(number) or self.part.holes_before(candidate):
                return run, run >= SURE_RUN
            number, candidate = number - 1, candidate - 1
            if not same_record(self.part.records[candidate], self.window.records[number]):
                return run, False
            run += 1
        return run, number == 0 or (run >= SURE_RUN and not self.rules.is_source_start)


def common_prefix_lengths(prefix: list[int], tokens: list[int]) -> list[int]:
    """Return, for each place of a list, how many tokens from there on equal a prefix (Z algorithm).

    Takes time in proportion to the length of both lists.
    """
    joined = [*prefix, -1, *tokens]
    lengths = [0] * len(joined)
    left = right = 0
    for place in range(1, len(joined)):
        length = min(right - place, lengths[place - left]) if place < right else 0
        while place + length < len(joined) and joined[length] == joined[place + length]:
            length += 1
        lengths[place] = length
        if place + length > right:
            left, right = place, place + length
    return lengths[len(prefix) + 1 :]
