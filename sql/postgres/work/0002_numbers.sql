-- version: 0.31.0
-- Numbers that depend on no clock and never come twice: see sql/sqlite/work/0003_numbers.sql.
-- Different here: the submission number comes from a sequence, because a counter row would make
-- transactions take turns. Two that submit at the same moment may be numbered in either order. A
-- transaction takes one value of the sequence and counts up from there, 65536 at the most.
CREATE TABLE work_counters (
    one               integer PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    token_floor       bigint NOT NULL DEFAULT 0 CHECK (token_floor >= 0),
    owner_token_floor bigint NOT NULL DEFAULT 0 CHECK (owner_token_floor >= 0)
) WITH (fillfactor = 10); -- room for the next versions of its one row
INSERT INTO work_counters (token_floor, owner_token_floor)
SELECT greatest((SELECT coalesce(max(token), 0) FROM work_history),
                (SELECT coalesce(max(token), 0) FROM work_items),
                (SELECT coalesce(max(token), 0) FROM work_waiting)),
       (SELECT coalesce(max(owner_token), 0) FROM idempotency_keys);
CREATE TRIGGER check_work_counters_update BEFORE UPDATE ON work_counters FOR EACH ROW
    WHEN (NEW.one <> OLD.one OR NEW.token_floor < OLD.token_floor
          OR NEW.owner_token_floor < OLD.owner_token_floor)
    EXECUTE FUNCTION refuse('the counters of work do not go down');
CREATE TRIGGER check_work_counters_delete BEFORE DELETE OR TRUNCATE ON work_counters
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('the counters of work are one row');

CREATE SEQUENCE work_submissions INCREMENT 65536;
ALTER TABLE work_items ADD COLUMN submission bigint NOT NULL DEFAULT 0; -- 0: ended before there were any
ALTER TABLE work_waiting ADD COLUMN submission bigint NOT NULL DEFAULT 0;
ALTER TABLE work_items DISABLE TRIGGER USER;
WITH numbered AS (
    SELECT work_item_id, nextval('work_submissions') AS number
    FROM (SELECT work_item_id, created_at FROM work_items
          WHERE status IN ('pending', 'in_progress', 'expired')
          UNION ALL SELECT work_item_id, created_at FROM work_waiting
          ORDER BY created_at, work_item_id) AS found),
items AS (
    UPDATE work_items AS w SET submission = n.number FROM numbered AS n
    WHERE w.work_item_id = n.work_item_id)
UPDATE work_waiting AS w SET submission = n.number FROM numbered AS n
WHERE w.work_item_id = n.work_item_id;
ALTER TABLE work_items ENABLE TRIGGER USER;
ALTER TABLE work_items ALTER COLUMN submission SET DEFAULT nextval('work_submissions');
ALTER TABLE work_waiting ALTER COLUMN submission SET DEFAULT nextval('work_submissions');

DROP INDEX idx_work_items_status_priority;
CREATE INDEX idx_work_items_status_priority ON work_items(status, priority DESC, submission)
    WHERE status IN ('pending', 'in_progress', 'expired');
DROP INDEX idx_work_items_claim_type;
CREATE INDEX idx_work_items_claim_type ON work_items(work_type, priority DESC, submission)
    WHERE status = 'pending';
DROP INDEX idx_work_items_claim_task;
CREATE INDEX idx_work_items_claim_task ON work_items(task_id, priority DESC, submission)
    WHERE status = 'pending';
CREATE TRIGGER check_work_items_submission BEFORE UPDATE OF submission ON work_items FOR EACH ROW
    WHEN (OLD.submission <> 0 AND NEW.submission <> OLD.submission)
    EXECUTE FUNCTION refuse('the submission number of a work item does not change');
CREATE TRIGGER check_work_waiting_submission BEFORE UPDATE OF submission ON work_waiting
FOR EACH ROW
    WHEN (OLD.submission <> 0 AND NEW.submission <> OLD.submission)
    EXECUTE FUNCTION refuse('the submission number of a work item does not change');

-- An item moves between its two tables by an INSERT there, then a DELETE here: the DELETE finds the
-- token in the other table and leaves the floor alone. The row there must be the same item: pending
-- with this token, on its way out after a lease, or one entry further on its way in.
CREATE OR REPLACE FUNCTION record_work_items_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM new_rows AS n JOIN work_waiting AS w USING (work_item_id)
               WHERE NOT (w.token = n.token AND w.entries = n.entries - 1)) THEN
        RAISE EXCEPTION 'a work item of this work_item_id is in work_waiting'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                  SCHEMA = TG_TABLE_SCHEMA;
    END IF;
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, retry_count, at)
    SELECT work_item_id, task_id, NULL, status, token, retry_count, created_at
    FROM new_rows WHERE entries = 0;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION record_work_waiting_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM new_rows AS n JOIN work_items AS w USING (work_item_id)
               WHERE NOT (w.status = 'pending' AND w.token = n.token AND w.attempts = n.attempts
                          AND w.attempts > 0)) THEN
        RAISE EXCEPTION 'a work item of this work_item_id is in work_items'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                  SCHEMA = TG_TABLE_SCHEMA;
    END IF;
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, retry_count,
                              message, at)
    SELECT work_item_id, task_id, NULL, 'pending', token, retry_count, reason, created_at
    FROM new_rows WHERE entries = 0 AND attempts = 0;
    RETURN NULL;
END $$;

CREATE FUNCTION raise_token_floor(gone bigint) RETURNS void LANGUAGE sql
SET search_path FROM CURRENT AS $$
    UPDATE work_counters SET token_floor = gone WHERE token_floor < gone;
$$;
CREATE FUNCTION raise_work_items_floor() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM raise_token_floor(max(o.token)) FROM old_rows AS o
    WHERE o.token > 0 AND NOT EXISTS (SELECT 1 FROM work_waiting AS w
                                      WHERE w.work_item_id = o.work_item_id AND w.token >= o.token);
    RETURN NULL;
END $$;
CREATE TRIGGER raise_work_items_floor AFTER DELETE ON work_items
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT
    EXECUTE FUNCTION raise_work_items_floor();
CREATE FUNCTION raise_work_waiting_floor() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM raise_token_floor(max(o.token)) FROM old_rows AS o
    WHERE o.token > 0 AND NOT EXISTS (SELECT 1 FROM work_items AS w
                                      WHERE w.work_item_id = o.work_item_id AND w.token >= o.token);
    RETURN NULL;
END $$;
CREATE TRIGGER raise_work_waiting_floor AFTER DELETE ON work_waiting
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT
    EXECUTE FUNCTION raise_work_waiting_floor();
CREATE FUNCTION raise_floors_truncated() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE work_counters SET
        token_floor = greatest(token_floor, (SELECT max(token) FROM work_items),
                               (SELECT max(token) FROM work_waiting)),
        owner_token_floor = greatest(owner_token_floor,
                                     (SELECT max(owner_token) FROM idempotency_keys));
    RETURN NULL;
END $$;
CREATE TRIGGER raise_work_items_truncated BEFORE TRUNCATE ON work_items
    FOR EACH STATEMENT EXECUTE FUNCTION raise_floors_truncated();
CREATE TRIGGER raise_work_waiting_truncated BEFORE TRUNCATE ON work_waiting
    FOR EACH STATEMENT EXECUTE FUNCTION raise_floors_truncated();
CREATE TRIGGER raise_idempotency_keys_truncated BEFORE TRUNCATE ON idempotency_keys
    FOR EACH STATEMENT EXECUTE FUNCTION raise_floors_truncated();

-- Foreign SQL that leases: the token that it left alone.
CREATE OR REPLACE FUNCTION count_work_item_lease() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    NEW.token := greatest(OLD.token, (SELECT token_floor FROM work_counters)) + 1;
    NEW.attempts := OLD.attempts + 1;
    RETURN NEW;
END $$;

CREATE FUNCTION raise_idempotency_keys_floor() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE work_counters SET owner_token_floor = o.top
    FROM (SELECT max(owner_token) AS top FROM old_rows) AS o WHERE owner_token_floor < o.top;
    RETURN NULL;
END $$;
CREATE TRIGGER raise_idempotency_keys_floor AFTER DELETE ON idempotency_keys
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT
    EXECUTE FUNCTION raise_idempotency_keys_floor();
