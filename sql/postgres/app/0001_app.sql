-- version: 0.30.0
-- Applications: their events, records, numbers and keys. What keys and values are made of is in
-- src/app/core/keys.h; an application's id is in front of every key, so applications share the table.
--
-- One process at a time has an application. Each of its sessions holds a shared advisory lock for as
-- long as it lives, taken when it connects (app_hold); whoever wants to become the owner needs the same
-- lock alone (app_take), so not one session of another owner is left then, and raises the epoch. A
-- session that comes back after that has an epoch of the past and is refused: two owners never write.

CREATE TABLE apps (
    id    bigint PRIMARY KEY CHECK (id BETWEEN 1 AND 4294967295),
    name  text COLLATE "C" NOT NULL UNIQUE,
    epoch bigint NOT NULL DEFAULT 0, -- +1 with every owner
    owner text NOT NULL DEFAULT '',  -- for people
    since timestamptz
);

CREATE TABLE app_entries (
    family smallint NOT NULL,
    key    bytea NOT NULL,
    value  bytea NOT NULL,
    PRIMARY KEY (family, key)
);

CREATE FUNCTION app_lock_of(app_id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT (1885435745::bigint << 32) + app_id -- "pawa"
$$;

-- Tries for a while; a request that waits in the lock's queue would hold the owner's new sessions up.
-- The new epoch, or 0 when another process has the application. The lock stays with the session.
CREATE FUNCTION app_take(app_id bigint, who text, wait_ms bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + wait_ms * interval '1 ms';
    taken bigint;
BEGIN
    WHILE NOT pg_try_advisory_lock(app_lock_of(app_id)) LOOP
        IF clock_timestamp() >= until THEN
            RETURN 0;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
    UPDATE apps SET epoch = epoch + 1, owner = who, since = clock_timestamp()
        WHERE id = app_id RETURNING epoch INTO STRICT taken;
    RETURN taken;
END $$;

CREATE FUNCTION app_hold(app_id bigint, my_epoch bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock_shared(app_lock_of(app_id));
    IF NOT EXISTS (SELECT FROM apps WHERE id = app_id AND epoch = my_epoch) THEN
        PERFORM pg_advisory_unlock_shared(app_lock_of(app_id));
        RAISE EXCEPTION 'another process has taken the application over' USING ERRCODE = 'PW001';
    END IF;
    RETURN true;
END $$;

-- A session whose client is gone may still be about to commit. True: it is no more, and whatever it
-- did is decided. A session holds the lock until its last transaction is over.
CREATE FUNCTION app_end_session(app_id bigint, session bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + interval '5 s';
BEGIN
    LOOP
        PERFORM pg_terminate_backend(pid) FROM pg_locks
            WHERE locktype = 'advisory' AND classid = (app_lock_of(app_id) >> 32)::oid
              AND objid = app_id::oid AND objsubid = 1 AND pid = session AND pid <> pg_backend_pid()
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
        IF NOT FOUND THEN
            RETURN true;
        END IF;
        EXIT WHEN clock_timestamp() >= until;
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN false;
END $$;
