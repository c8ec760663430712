-- version: 0.1.0
-- The log. Offsets are given by the ledger, never by the database: 1, 2, 3, ... without holes.
CREATE TABLE events (
    offset         INTEGER PRIMARY KEY AUTOINCREMENT, -- ordering
    id             TEXT UNIQUE NOT NULL,              -- idempotency key
    run_id         TEXT NOT NULL,
    turn           INTEGER NOT NULL,
    kind           TEXT NOT NULL,
    actor          TEXT NOT NULL,
    payload        TEXT NOT NULL,                     -- JSON, as it was given
    created_at     TEXT NOT NULL,                     -- UTC, 2026-01-29 10:20:30.123456
    schema_version INTEGER NOT NULL DEFAULT 1,
    hash           BLOB NOT NULL                      -- SHA-256 over this event and the hash before
);
CREATE INDEX idx_run_id ON events(run_id);
CREATE INDEX idx_kind ON events(kind);
CREATE INDEX idx_actor ON events(actor);

-- Attempts at turns, kept beside the pawl.turn.* events they come from: 0 open, 1 committed,
-- 2 abandoned.
CREATE TABLE turns (
    run_id       TEXT NOT NULL,
    turn         INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    state        INTEGER NOT NULL CHECK (state BETWEEN 0 AND 2),
    begin_offset INTEGER NOT NULL,
    end_offset   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, turn, attempt)
) WITHOUT ROWID;
CREATE INDEX idx_turns_begin ON turns(begin_offset);
-- Few, however long the log is: what holds readers of complete turns back, and what they skip.
CREATE INDEX idx_turns_unfinished ON turns(end_offset) WHERE state <> 1;

-- Derived data: unit vectors of 32-bit floats, little-endian.
CREATE TABLE embeddings (
    offset INTEGER PRIMARY KEY REFERENCES events(offset),
    vector BLOB NOT NULL
);
