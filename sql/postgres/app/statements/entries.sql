-- Entries of an application: a look-up, a page or a whole batch is one round trip.

-- fragment: page_of(order)
-- The sum is that of the rows before: a page ends behind the one that goes over the limit.
SELECT key, value FROM (
    SELECT key, value, sum(octet_length(key) + octet_length(value))
        OVER (ORDER BY key {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (SELECT key, value FROM app_entries WHERE family = $1::bigint::smallint
        AND key >= $2 AND key < $3 ORDER BY key {order} LIMIT $4) AS page) AS sums
WHERE before IS NULL OR before <= $5 ORDER BY key {order}

-- fragment: asked_rows
unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY AS asked(family, key, place)

-- fragment: new_rows
INSERT INTO app_entries (family, key, value) SELECT family::smallint, key, value
FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) AS new(family, key, value)

-- name: get (iX) -> (ix)
SELECT place, value FROM unnest($2::bytea[]) WITH ORDINALITY AS asked(key, place)
JOIN app_entries USING (key) WHERE family = $1::bigint::smallint;

-- name: scan (ixxii) -> (xx)
{page_of: };

-- name: scan_back (ixxii) -> (xx)
{page_of: DESC};

-- name: insert (IXX) -> (i)
{all_or_none: {new_rows}; $1};

-- name: put (IXX) -> (i)
{all_or_none: {new_rows} ON CONFLICT (family, key) DO UPDATE SET value = excluded.value; $1};

-- name: delete (IX)
DELETE FROM app_entries AS stored USING {asked_rows}
WHERE stored.family = asked.family::smallint AND stored.key = asked.key;

-- name: taken (IX) -> (i)
SELECT min(place) FROM {asked_rows}
JOIN app_entries AS stored ON stored.family = asked.family::smallint AND stored.key = asked.key;
