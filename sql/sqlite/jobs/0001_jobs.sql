-- version: 0.1.0
-- Long acts of a node: what they were asked, how far they are and what became of them.
CREATE TABLE jobs (
    job_id     TEXT    NOT NULL PRIMARY KEY, -- UUIDv7: in the order of their creation
    kind       TEXT    NOT NULL CHECK (length(kind) BETWEEN 1 AND 64),
    state      INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6),
    parameters TEXT    NOT NULL, -- JSON
    done       INTEGER NOT NULL,
    total      INTEGER NOT NULL, -- 0: nobody knows
    result     TEXT,             -- JSON; NULL: none
    code       TEXT,             -- why it failed: the name of a status
    detail     TEXT,
    advised    INTEGER NOT NULL, -- the detail ends with what to do
    created_at INTEGER NOT NULL, -- microseconds since 1970, like all times
    started_at INTEGER NOT NULL, -- 0: it was not
    ended_at   INTEGER NOT NULL  -- 0: it has not
) STRICT;

CREATE INDEX jobs_ended ON jobs (ended_at, job_id);
