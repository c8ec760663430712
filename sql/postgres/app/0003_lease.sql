-- version: 0.30.2
-- An owner that stands still must not keep its application for ever. It holds the lock of 0001_app.sql for
-- as long as its sessions live, which a stopped process has too. So it also has a lease, on the server's
-- clock, and renews it. Whoever finds the lock taken and the lease run out ends the owner's sessions; the
-- lock alone still says who may write, so two owners never do.

-- NULL: an owner of an earlier version, which renews nothing and keeps the application with its sessions.
ALTER TABLE apps ADD COLUMN lease_until timestamptz;

-- Asks all sessions of an owner whose lease has run out to end. One that writes takes its transaction back.
-- A session that has the lock exclusively is just taking the application, and leaves it so by itself, whatever
-- its client does. The lease is looked at after the sessions: that of one that has taken it can be seen then.
CREATE FUNCTION app_end_owner(app_id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    owners int[] := ARRAY(SELECT pid FROM pg_locks
        WHERE locktype = 'advisory' AND classid = (app_lock_of(app_id) >> 32)::oid
          AND objid = app_id::oid AND objsubid = 1 AND granted AND pid <> pg_backend_pid()
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        GROUP BY pid HAVING bool_and(mode = 'ShareLock'));
BEGIN
    IF NOT EXISTS (SELECT FROM apps WHERE id = app_id AND lease_until < clock_timestamp()) THEN
        RETURN 0;
    END IF;
    RETURN (SELECT count(pg_terminate_backend(pid)) FROM unnest(owners) AS pid);
END $$;

-- app_take with a lease, in its place. The exclusive lock ends with the transaction, when the new epoch can be
-- seen; what the session keeps is the owner's shared lock. So an owner that is stopped at any moment from here on
-- can be ended like any other.
DROP FUNCTION app_take(bigint, text, bigint);
CREATE FUNCTION app_take_lease(app_id bigint, who text, wait_ms bigint, term_ms bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + wait_ms * interval '1 ms';
    taken bigint;
BEGIN
    WHILE NOT pg_try_advisory_xact_lock(app_lock_of(app_id)) LOOP
        PERFORM app_end_owner(app_id);
        IF clock_timestamp() >= until THEN
            RETURN 0;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    UPDATE apps SET epoch = epoch + 1, owner = who, since = clock_timestamp(),
                    lease_until = clock_timestamp() + term_ms * interval '1 ms'
        WHERE id = app_id RETURNING epoch INTO STRICT taken;
    PERFORM pg_advisory_lock_shared(app_lock_of(app_id));
    RETURN taken;
END $$;
