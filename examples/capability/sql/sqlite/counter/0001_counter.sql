-- version: 0.1.0
CREATE TABLE changes (
    change_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    value     INTEGER NOT NULL -- after the change
) STRICT;
CREATE INDEX changes_by_name ON changes (name, change_id);
