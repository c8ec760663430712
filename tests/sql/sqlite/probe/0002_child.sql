-- version: 0.30.0
CREATE TABLE probe_child (
    id       INTEGER PRIMARY KEY,
    probe_id INTEGER NOT NULL REFERENCES probe (id)
);

CREATE TRIGGER probe_child_guard
BEFORE DELETE ON probe_child
BEGIN
    SELECT RAISE(ABORT, 'children stay');
END;
