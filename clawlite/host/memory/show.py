"""What ``clawlite inspect`` shows of an image's stores."""

from clawlite.core.image import memories
from clawlite.core.image.image import MEMORY


def show(image) -> tuple:
    """Return ([{"name", "type", "scope", "max_age_s", "max_entries", "compaction", "promise",
    "wear_saving", "encrypted"}], lines of them).
    """
    found = [_store(store) for store in memories.stores(image)] if image.size_of(MEMORY) else []
    return found, [
        f"{store['name']:20} {store['type']}, {store['scope']}, {store['promise']}"
        f"{', wear-saving' * store['wear_saving']}{', encrypted' * store['encrypted']}"
        for store in found
    ]


def _store(store) -> dict:
    return {
        "name": store.name,
        "type": memories.TYPES[store.type],
        "scope": memories.SCOPES[store.scope],
        "max_age_s": store.max_age_s,
        "max_entries": store.max_entries,
        "compaction": memories.STRATEGIES[store.compaction],
        "promise": "power-safe" if store.lasting else "kill-safe",
        "wear_saving": store.saves_wear,
        "encrypted": store.secret is not None,
    }
