-- version: 0.30.0
-- The tests' own component: what a real one looks like, and a text that is hard to embed.
CREATE TABLE probe (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL CONSTRAINT probe_name_unique UNIQUE,
    body BLOB,
    size REAL CONSTRAINT probe_size_positive CHECK (size IS NULL OR size > 0)
);

INSERT INTO probe (name) VALUES ('what??='' "é\n" /* ; */');
