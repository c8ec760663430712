-- version: 0.30.2
-- An owner that stands still must not keep its application for ever. It holds the lock of 0001_app.sql for
-- as long as its sessions live, which a stopped process has too. So it also has a lease, on the server's
-- clock, and renews it. Whoever finds the lock taken and the lease run out ends the owner's sessions; the
-- lock alone still says who may write, so two owners never do.

-- NULL: an owner of an earlier version, which renews nothing and keeps the application with its sessions.
ALTER TABLE apps ADD COLUMN lease_until timestamptz;

-- Asks all sessions of the owner to end. One that writes takes its transaction back.
CREATE FUNCTION app_end_owner(app_id bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(pg_terminate_backend(pid)) FROM pg_locks
        WHERE locktype = 'advisory' AND classid = (app_lock_of(app_id) >> 32)::oid
          AND objid = app_id::oid AND objsubid = 1 AND granted AND mode = 'ShareLock'
          AND pid <> pg_backend_pid()
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

-- app_take with a lease, in its place.
DROP FUNCTION app_take(bigint, text, bigint);
CREATE FUNCTION app_take_lease(app_id bigint, who text, wait_ms bigint, term_ms bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + wait_ms * interval '1 ms';
    taken bigint;
BEGIN
    WHILE NOT pg_try_advisory_lock(app_lock_of(app_id)) LOOP
        PERFORM app_end_owner(id) FROM apps WHERE id = app_id AND lease_until < clock_timestamp();
        IF clock_timestamp() >= until THEN
            RETURN 0;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    UPDATE apps SET epoch = epoch + 1, owner = who, since = clock_timestamp(),
                    lease_until = clock_timestamp() + term_ms * interval '1 ms'
        WHERE id = app_id RETURNING epoch INTO STRICT taken;
    RETURN taken;
END $$;
