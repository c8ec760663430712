-- version: 0.1.0
-- Numbers are not unique here: a record stored twice has to be seen. The index makes a commit touch
-- several pages.
CREATE TABLE record (
    number bigint NOT NULL,
    body   text NOT NULL
);
CREATE INDEX record_body ON record (body);
