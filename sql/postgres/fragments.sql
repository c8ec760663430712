-- Fragments that the statements of every component may use.

-- fragment: all_or_none(statement, sent)
-- An INSERT or UPDATE that stores as many rows as the array `sent` has, or divides by zero: the call fails
-- with CORRUPT (src/store/postgres/error.c) before anything is committed. A trigger planted meanwhile
-- that drops a row says nothing by itself. Returns one row, types (i). `statement` ends before RETURNING.
WITH done AS ({statement} RETURNING 1)
SELECT 1 / (count(*) = cardinality({sent}))::integer FROM done
