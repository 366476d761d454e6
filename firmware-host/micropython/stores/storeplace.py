"""The positions of the entries of one part of a store in the log of a board's stores."""

from array import array


class Place:
    """One part of one store.

    store, part  as in the log;  number: part of the ids that callers see
    last, at     number of the newest entry, 0 before the first; ms since 1970 of the newest that
                 has a time, 0 without one
    offsets      array('I'): position of each entry in the log, the oldest first; 0 for an entry
                 that is gone
    tags         array('H'): 16 bits of the CRC-32 of its key, 0 without a key
    first, count position of the first entry that is not gone, and how many are not
    asked        number of the newest entry when a compaction was last requested
    """

    def __init__(self, number: int, store: str, part: str):
        self.number, self.store, self.part = number, store, part
        self.last = self.at = self.first = self.count = self.asked = 0
        self.offsets, self.tags = array("I"), array("H")
