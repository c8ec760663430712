"""Kinds of edits on the entries of an application, as pure functions: entries in, changes out.

Entries are {family: {key: value}}. A change is ("put", family, key, value) or ("delete", family, key, None). An edit
that finds nothing to change returns no changes, and is no kind of that store.
"""
import json


def _flip(value, at):
    return value[:at] + bytes([value[at] ^ 0x10]) + value[at + 1:]


def _next_key(key):
    return (int.from_bytes(key, "big") + 1).to_bytes(len(key), "big")


def _value_edit(pick, change):
    """Puts another value under one key: the first, the middle one or the last."""
    def edit(entries, older, family):
        keys = sorted(entries[family])
        key = keys[{"first": 0, "middle": len(keys) // 2, "last": -1}[pick]]
        value = change(entries[family], keys, key, older)
        return [] if value is None or value == entries[family][key] else [("put", family, key, value)]
    return edit


def _delete(which):
    def edit(entries, older, family):
        keys = sorted(entries[family])
        chosen = {"first": keys[:1], "middle": keys[len(keys) // 2:][:1], "last": keys[-1:], "half": keys[len(keys) // 2:],
                  "all": keys}[which]
        return [("delete", family, key, None) for key in chosen]
    return edit


def _swap(entries, older, family):
    keys = sorted(entries[family])
    first, last = keys[0], keys[-1]
    if entries[family][first] == entries[family][last]:
        return []
    return [("put", family, first, entries[family][last]), ("put", family, last, entries[family][first])]


def _move(entries, older, family):
    last = sorted(entries[family])[-1]
    return [("delete", family, last, None), ("put", family, _next_key(last), entries[family][last])]


def _copy_beyond(entries, older, family):
    last = sorted(entries[family])[-1]
    return [("put", family, _next_key(last), entries[family][last])]


def back_to(entries, older, families):
    """The families as they were in an older copy."""
    changes = []
    for family in families:
        now, then = entries.get(family, {}), older.get(family, {})
        changes += [("delete", family, key, None) for key in now.keys() - then.keys()]
        changes += [("put", family, key, value) for key, value in then.items() if now.get(key) != value]
    return changes


EDITS = {
    "delete the first": _delete("first"),
    "delete one in the middle": _delete("middle"),
    "delete the last": _delete("last"),
    "delete the later half": _delete("half"),
    "delete all": _delete("all"),
    "flip a bit of the first byte": _value_edit("middle", lambda e, ks, k, o: _flip(e[k], 0) if e[k] else None),
    "flip a bit of the last byte": _value_edit("middle", lambda e, ks, k, o: _flip(e[k], len(e[k]) - 1) if e[k] else None),
    "flip a bit in the last entry": _value_edit("last", lambda e, ks, k, o: _flip(e[k], len(e[k]) // 2) if e[k] else None),
    "cut the value": _value_edit("middle", lambda e, ks, k, o: e[k][:-1] if e[k] else None),
    "empty the value": _value_edit("middle", lambda e, ks, k, o: b""),
    "append a byte": _value_edit("middle", lambda e, ks, k, o: e[k] + b"\0"),
    "put zeros": _value_edit("last", lambda e, ks, k, o: bytes(len(e[k]))),
    "put the neighbour's value": _value_edit("last", lambda e, ks, k, o: e[ks[0]]),
    "swap two values": _swap,
    "move the last": _move,
    "copy the last beyond the end": _copy_beyond,
    "put back an older copy": lambda entries, older, family: back_to(entries, older, [family]),
}


def descriptor_edit(path, value):
    """Another value in the stored descriptor, which stays one that can be read."""
    def edit(entries, older, _):
        changes = []
        for key, stored in entries.get("meta", {}).items():
            if stored.startswith(b"{"):
                descriptor = json.loads(stored)
                at = descriptor
                for step in path[:-1]:
                    at = at[step]
                if at[path[-1]] != value:
                    at[path[-1]] = value
                    changes.append(("put", "meta", key, json.dumps(descriptor, separators=(",", ":")).encode()))
        return changes
    return edit


OWN_SEQUENCE = ("kinds", 0, "sequences", 0)
DESCRIPTOR_EDITS = {
    **{f"trust level {level}": descriptor_edit(("trust",), level) for level in (0, 1, 2)},
    "another id": descriptor_edit(("id",), 2),
    "another name": descriptor_edit(("name",), "sorder"),
    "another number of partitions": descriptor_edit(("partitions",), 3),
    "another id of a kind": descriptor_edit(("kinds", 0, "id"), 2),
    "another id of a sequence": descriptor_edit((*OWN_SEQUENCE, "id"), 17),
    "another name of a sequence": descriptor_edit((*OWN_SEQUENCE, "name"), "voice"),
    "another first number": descriptor_edit((*OWN_SEQUENCE, "initial"), 1),
}


def astray(copy):
    """The last stored number of each partition in another one, where nobody looks for it."""
    def edit(entries, older, _):
        changes = []
        for key, value in entries.get("seq", {}).items():
            other = key[:4] + bytes([key[4], key[5] ^ 1]) + key[6:]
            changes.append(("put", "seq", other, value))
            if not copy:
                changes.append(("delete", "seq", key, None))
        return changes
    return edit


def together(families, all_of_it):
    """Families cut at once: deleted, or put back to the older copy."""
    def edit(entries, older, _):
        if all_of_it:
            return [("delete", family, key, None) for family in families for key in entries.get(family, {})]
        return back_to(entries, older, families)
    return edit


def kinds(entries, older):
    """Every kind there is for these entries: (name, changes)."""
    found = []
    for family in sorted(entries):
        for name, edit in EDITS.items():
            found.append((f"{family}: {name}", edit(entries, older, family)))
    for name, edit in DESCRIPTOR_EDITS.items():
        found.append((f"descriptor: {name}", edit(entries, older, None)))
    found.append(("seq: copy all into the other partition", astray(True)(entries, older, None)))
    found.append(("seq: move all into the other partition", astray(False)(entries, older, None)))
    every = sorted(entries)
    groups = [["plog", "seq", "offsets"], ["seq", "offsets"], ["plog", "wlog"], ["wlog", "records"],
              [f for f in every if f != "meta"], [f for f in every if f not in ("meta", "plog")]]
    for group in groups:
        named = " + ".join(group)
        found.append((f"{named}: delete all", together(group, True)(entries, older, None)))
        found.append((f"{named}: put back an older copy", together(group, False)(entries, older, None)))
    return [(name, changes) for name, changes in found if changes]
