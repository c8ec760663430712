-- What a connection sets up, asks about itself, and asks about another session.

-- name: promises () -> (ttttiit)
SELECT current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('transaction_read_only'), current_setting('synchronous_commit'),
    pg_backend_pid(),
    coalesce((SELECT (extract(epoch FROM backend_start) * 1000000)::bigint
        FROM pg_stat_activity WHERE pid = pg_backend_pid()), 0),
    current_setting('session_replication_role');

-- name: set_session (ttiii) -> (tttttttt)
-- Without JIT: compiling the check of the schema took seconds of CPU per connection, running it a millisecond.
-- pg_temp last: a temporary table must not stand in for one of ours. pg_catalog is first, as always.
SELECT set_config('search_path', quote_ident($1) || ', pg_temp', false),
    set_config('synchronous_commit', $2, false),
    set_config('statement_timeout', $3::text, false),
    set_config('lock_timeout', $4::text, false),
    set_config('idle_in_transaction_session_timeout', $5::text, false),
    set_config('TimeZone', 'UTC', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false);

-- name: limit_transaction (i) -> (t)
SELECT set_config('statement_timeout', $1::text, true);

-- name: encoding () -> (t)
SELECT current_setting('server_encoding');

-- fragment: of_session
FROM pg_stat_activity WHERE pid = $1::integer
AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2

-- name: cancel_session (ii) -> (b)
SELECT pg_cancel_backend(pid) {of_session};

-- name: session_is_idle (ii) -> (b)
-- A process that has not begun with what we sent is idle; one that was stopped inside of a pipeline
-- waits for ClientRead. Its wait alone does not tell: a process that was stopped after its last answer
-- may not have begun to wait. Where neither is shown (a process that is gone, statistics of another
-- user) nothing is known.
SELECT (state LIKE 'idle%' OR wait_event = 'ClientRead') IS TRUE {of_session};
