-- version: 0.1.0
-- The log. Offsets are given by the ledger, never by a sequence: 1, 2, 3, ... without holes. Names
-- compare byte by byte, as on every other backend.
CREATE TABLE events (
    "offset"       bigint PRIMARY KEY,               -- ordering
    id             text COLLATE "C" UNIQUE NOT NULL, -- idempotency key
    run_id         text COLLATE "C" NOT NULL,
    turn           bigint NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    actor          text COLLATE "C" NOT NULL,
    payload        json NOT NULL,                    -- as it was given; jsonb would rewrite it
    created_at     timestamptz NOT NULL,
    schema_version integer NOT NULL DEFAULT 1,
    hash           bytea NOT NULL                    -- SHA-256 over this event and the hash before
);
CREATE INDEX idx_run_id ON events(run_id, "offset");
CREATE INDEX idx_kind ON events(kind, "offset");
CREATE INDEX idx_actor ON events(actor, "offset");

-- The last event, in the one row that every writer locks for the length of its transaction. So
-- offsets are given, committed and seen in the same order: no reader is shown n + 1 before n. Most
-- of its page stays free for its next versions.
CREATE TABLE ledger_head (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    "offset" bigint NOT NULL,
    hash     bytea NOT NULL
) WITH (fillfactor = 10);
INSERT INTO ledger_head ("offset", hash) VALUES (0, decode(repeat('00', 32), 'hex'));

-- Attempts at turns, kept beside the pawl.turn.* events they come from: 0 open, 1 committed,
-- 2 abandoned.
CREATE TABLE turns (
    run_id       text COLLATE "C" NOT NULL,
    turn         bigint NOT NULL,
    attempt      bigint NOT NULL,
    state        integer NOT NULL CHECK (state BETWEEN 0 AND 2),
    begin_offset bigint NOT NULL,
    end_offset   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, turn, attempt)
);
CREATE INDEX idx_turns_begin ON turns(begin_offset);
CREATE INDEX idx_turns_unfinished ON turns(end_offset) WHERE state <> 1;

-- Derived data: unit vectors of 32-bit floats, little-endian. Where the extension `vector` is to be
-- had, the ledger adds a column of its type; a row without it counts as not searchable there.
CREATE TABLE embeddings (
    "offset" bigint PRIMARY KEY REFERENCES events("offset"),
    vector   bytea NOT NULL
);
