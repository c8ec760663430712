-- version: 0.1.0
-- Numbers are not unique here: a record stored twice has to be seen.
CREATE TABLE record (
    number BIGINT NOT NULL,
    body   VARCHAR NOT NULL
);
