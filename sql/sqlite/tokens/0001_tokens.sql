-- version: 0.1.0
-- Who may ask a node, and what. A token itself is shown once and stored nowhere: what is kept is its hash.
CREATE TABLE tokens (
    token_id   TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    scope      INTEGER NOT NULL CHECK (scope BETWEEN 1 AND 3), -- read, write, admin
    hash       BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at INTEGER NOT NULL, -- microseconds since 1970, like all times
    expires_at INTEGER NOT NULL, -- 0: never
    revoked_at INTEGER NOT NULL  -- 0: it was not
) STRICT;
