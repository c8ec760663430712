-- version: 0.30.0
-- The tests' own component on DuckDB.
CREATE TABLE probe (
    id   BIGINT NOT NULL,
    name TEXT NOT NULL
);
INSERT INTO probe VALUES (1, 'it''s; here');
