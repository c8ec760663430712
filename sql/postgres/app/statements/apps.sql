-- Applications of a database, who owns them, and their anchors.

-- name: define (it)
INSERT INTO apps (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: of_id (it) -> (it)
SELECT id, name FROM apps WHERE id = $1 OR name = $2;

-- name: find (ti) -> (it)
SELECT id, name FROM apps WHERE $1 = '' OR name = $1 ORDER BY name LIMIT $2;

-- name: take (itii) -> (i)
SELECT app_take_lease($1, $2, $3, $4);

-- name: owner (i) -> (tti)
SELECT owner, to_char(since, 'YYYY-MM-DD HH24:MI:SS'),
    CASE WHEN lease_until IS NULL THEN 0
        ELSE greatest(ceil(extract(epoch FROM lease_until - clock_timestamp())), 1) END::bigint
FROM apps WHERE id = $1;

-- name: renew (iii)
UPDATE apps SET lease_until = clock_timestamp() + $3 * interval '1 ms' WHERE id = $1 AND epoch = $2;

-- name: end_session (ii) -> (b)
SELECT app_end_session($1, $2);

-- name: anchor (i) -> (t)
SELECT anchor FROM apps WHERE id = $1;

-- name: set_anchor (it)
UPDATE apps SET anchor = $2 WHERE id = $1;
