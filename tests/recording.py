"""A chooser that remembers each outcome by its address, so that two implementations meet the same draws and coins."""

from collections.abc import Hashable, MutableMapping
from typing import Any

from rheo_core.checks import InvalidInput, check_probability, check_weights
from rheo_core.chooser import Chooser


class RecordingChooser:
    """Remembers each outcome by its address and gives it again whenever that address is asked for.

    Two constructions, or two implementations, given the same `record` therefore run on the same draws and coins
    whatever order they ask in. Addresses not yet in the record, and calls without one, go to `source`.
    """

    def __init__(self, source: Chooser, record: MutableMapping[Hashable, bool | int] | None = None) -> None:
        self.source = source
        self.record: MutableMapping[Hashable, bool | int] = {} if record is None else record

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """The outcome recorded at `at`; raises where it is impossible at this probability."""
        if at is None:
            return self.source.accept(probability)
        if at not in self.record:
            self.record[at] = self.source.accept(probability, at)
        outcome = bool(self.record[at])
        check_probability(probability)
        if probability == (0 if outcome else 1):
            raise InvalidInput("record", {at: outcome}, f"an outcome possible at probability {probability}")
        return outcome

    def index(self, weights: Any, at: Hashable | None = None) -> int:
        """The position recorded at `at`; raises where its weight is not positive."""
        if at is None:
            return self.source.index(weights)
        if at not in self.record:
            self.record[at] = self.source.index(weights, at)
        position = int(self.record[at])
        row = check_weights(weights)
        if not 0 <= position < len(row) or not row[position] > 0:
            raise InvalidInput("record", {at: position}, f"a position of positive weight among {len(row)}")
        return position
