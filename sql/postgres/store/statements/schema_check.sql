-- Whether a database still has the schema that its migrations made (src/store/postgres/schema_check.c).

-- fragment: index_columns
-- The key columns of an index, "a,b"; those of an expression are not among them.
array_to_string(ARRAY(SELECT attname FROM unnest(indkey::int2[]) WITH ORDINALITY
    AS k (number, place) JOIN pg_attribute ON attrelid = indrelid AND attnum = k.number
    WHERE place <= indnkeyatts ORDER BY place), ',')

-- fragment: trigger_essence
-- scripts/embed-sql (trigger_essence) writes our definitions like this.
md5(lower(regexp_replace(pg_get_triggerdef(pg_trigger.oid, true),
    '::(text|integer|bigint|boolean|timestamp with time zone)(\[\])?|[\s()]', '', 'g')))

-- fragment: untried_server
-- The first server whose pg_get_triggerdef nobody has seen. It may write an expression in another way, and
-- then every store would be damaged after an upgrade: there a trigger is compared by its function's name
-- alone, and no test runs that. When there is a server to try, run the suites work_foreign and app_store on it
-- and raise the number.
190000

-- name: find_odd (tTTTT) -> (ttt)
-- $1 the namespace, $2 our tables, $3 our triggers as table.name.function.essence, $4 our unique indexes
-- as table.name.columns, $5 our functions as name.md5 of the body. Triggers of a partition belong to the
-- whole table, but can be disabled alone.
-- What is there is read once, MATERIALIZED: folded into the comparisons, every definition was written out and
-- hashed again for each one that is wanted, which took seconds per connection where a catalog has no statistics.
WITH ours AS MATERIALIZED (SELECT c.oid, c.relname::text AS relname, c.relrowsecurity, c.relpersistence,
        n.oid AS namespace
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = ANY ($2) AND c.relkind IN ('r', 'p')),
triggers AS MATERIALIZED (SELECT relname || '.' || tgname || '.' || proname AS name, {trigger_essence} AS essence
    FROM pg_trigger JOIN ours ON tgrelid = ours.oid
    JOIN pg_proc p ON p.oid = tgfoid AND p.pronamespace = namespace),
functions AS MATERIALIZED (SELECT proname || '.' || md5(prosrc) AS definition FROM pg_proc
    WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)),
indexes AS MATERIALIZED (SELECT ours.relname || '.' || c.relname || '.' || {index_columns} AS definition
    FROM pg_index JOIN ours ON indrelid = ours.oid JOIN pg_class c ON c.oid = indexrelid
    WHERE indisunique AND indisvalid AND indimmediate AND indpred IS NULL AND indexprs IS NULL)
SELECT 'no table', '', wanted FROM unnest($2) AS wanted
    WHERE NOT EXISTS (SELECT FROM ours WHERE relname = wanted)
UNION ALL SELECT 'a trigger', relname, tgname::text
    FROM pg_trigger JOIN ours ON tgrelid = ours.oid
    WHERE NOT tgisinternal AND tgparentid = 0 AND NOT EXISTS (SELECT FROM unnest($3) AS wanted
        WHERE split_part(wanted, '.', 1) = relname AND split_part(wanted, '.', 2) = tgname)
UNION ALL SELECT 'a rule', relname, rulename::text FROM pg_rewrite JOIN ours ON ev_class = ours.oid
UNION ALL SELECT 'row security', relname, '' FROM ours WHERE relrowsecurity
UNION ALL SELECT 'a child table', relname, inhrelid::regclass::text
    FROM pg_inherits JOIN ours ON inhparent = ours.oid WHERE inhrelid NOT IN (SELECT oid FROM ours)
UNION ALL SELECT 'no log', relname, '' FROM ours WHERE relpersistence <> 'p'
UNION ALL SELECT 'no trigger', relname, tgname::text
    FROM pg_trigger JOIN ours ON tgrelid = ours.oid WHERE tgenabled NOT IN ('O', 'A')
UNION ALL SELECT 'no trigger', split_part(wanted, '.', 1), split_part(wanted, '.', 2)
    FROM unnest($3) AS wanted
    WHERE NOT EXISTS (SELECT FROM triggers
        WHERE name || '.' || CASE WHEN current_setting('server_version_num')::int >= {untried_server}
            THEN split_part(wanted, '.', 4) ELSE essence END = wanted)
UNION ALL SELECT 'no function', '', split_part(wanted, '.', 1) FROM unnest($5) AS wanted
    WHERE NOT EXISTS (SELECT FROM functions WHERE definition = wanted)
UNION ALL SELECT 'no index', '', split_part(wanted, '.', 2) FROM unnest($4) AS wanted
    WHERE NOT EXISTS (SELECT FROM indexes WHERE definition = wanted)
LIMIT 1;

-- name: find_table (tT) -> (t)
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = ANY ($2) AND c.relkind IN ('r', 'p')
ORDER BY 1 LIMIT 1;
