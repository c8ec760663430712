-- version: 0.31.0
-- Numbers that depend on no clock and never come twice.
--
-- * Fencing tokens: an id that comes back after its row was removed continues above every token that
--   a removed row ever had. A claim takes max(token, token_floor) + 1; idempotency keys likewise.
-- * The claim order: priority, then the number of the submission. created_at is for people.
-- * The TTL of a key runs on the boot clock of the boot that began the key.
-- * work_clock: how old something is, whatever steps the wall clock made.
CREATE TABLE work_counters (
    one               INTEGER PRIMARY KEY CHECK (one = 1),
    token_floor       INTEGER NOT NULL DEFAULT 0
                      CHECK (typeof(token_floor) = 'integer' AND token_floor >= 0),
    owner_token_floor INTEGER NOT NULL DEFAULT 0
                      CHECK (typeof(owner_token_floor) = 'integer' AND owner_token_floor >= 0),
    submissions       INTEGER NOT NULL DEFAULT 0 -- the last number given
                      CHECK (typeof(submissions) = 'integer' AND submissions >= 0)
);
INSERT INTO work_counters (one) VALUES (1);
CREATE TRIGGER check_work_counters_update BEFORE UPDATE ON work_counters
WHEN NEW.one <> OLD.one OR NEW.token_floor < OLD.token_floor
     OR NEW.owner_token_floor < OLD.owner_token_floor OR NEW.submissions < OLD.submissions
BEGIN
    SELECT RAISE(ABORT, 'the counters of work do not go down');
END;
CREATE TRIGGER check_work_counters_insert BEFORE INSERT ON work_counters
BEGIN
    SELECT RAISE(ABORT, 'the counters of work are one row');
END;
CREATE TRIGGER check_work_counters_delete BEFORE DELETE ON work_counters
BEGIN
    SELECT RAISE(ABORT, 'the counters of work are one row');
END;

-- The lowest value that the wall clock minus the boot clock had in a boot. A step forward raises the
-- difference, so the boot clock plus this value is never ahead on account of a step.
CREATE TABLE work_clock (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id   TEXT NOT NULL,
    offset_us INTEGER NOT NULL CHECK (typeof(offset_us) = 'integer')
);

-- Items. The trigger that keeps updated_at must not see the numbering of rows.
DROP TRIGGER update_work_items_timestamp;
ALTER TABLE work_items ADD COLUMN submission INTEGER NOT NULL DEFAULT 0 -- 0: ended before there were any
    CHECK (typeof(submission) = 'integer' AND submission >= 0);
ALTER TABLE work_waiting ADD COLUMN submission INTEGER NOT NULL DEFAULT 0
    CHECK (typeof(submission) = 'integer' AND submission >= 0);
WITH open_items AS (
    SELECT work_item_id, created_at FROM work_items
    WHERE status IN ('pending', 'in_progress', 'expired')
    UNION ALL SELECT work_item_id, created_at FROM work_waiting),
numbered AS (
    SELECT work_item_id, row_number() OVER (ORDER BY created_at, work_item_id) AS number
    FROM open_items)
UPDATE work_items SET submission = number FROM numbered
WHERE work_items.work_item_id = numbered.work_item_id;
WITH open_items AS (
    SELECT work_item_id, created_at FROM work_items
    WHERE status IN ('pending', 'in_progress', 'expired')
    UNION ALL SELECT work_item_id, created_at FROM work_waiting),
numbered AS (
    SELECT work_item_id, row_number() OVER (ORDER BY created_at, work_item_id) AS number
    FROM open_items)
UPDATE work_waiting SET submission = number FROM numbered
WHERE work_waiting.work_item_id = numbered.work_item_id;
UPDATE work_counters SET
    submissions = (SELECT count(*) FROM work_items WHERE submission > 0)
                  + (SELECT count(*) FROM work_waiting),
    token_floor = max((SELECT coalesce(max(token), 0) FROM work_history),
                      (SELECT coalesce(max(token), 0) FROM work_items),
                      (SELECT coalesce(max(token), 0) FROM work_waiting)),
    owner_token_floor = (SELECT coalesce(max(owner_token), 0) FROM idempotency_keys);

-- idx_work_items_status_priority stays: it serves claim statements that users have written.
CREATE INDEX idx_work_items_claim ON work_items(priority DESC, submission) WHERE status = 'pending';
DROP INDEX idx_work_items_claim_type;
CREATE INDEX idx_work_items_claim_type ON work_items(work_type, priority DESC, submission)
    WHERE status = 'pending';
DROP INDEX idx_work_items_claim_task;
CREATE INDEX idx_work_items_claim_task ON work_items(task_id, priority DESC, submission)
    WHERE status = 'pending';

CREATE TRIGGER check_work_items_submission BEFORE UPDATE OF submission ON work_items
WHEN OLD.submission <> 0 AND NEW.submission <> OLD.submission
BEGIN
    SELECT RAISE(ABORT, 'the submission number of a work item does not change');
END;
CREATE TRIGGER check_work_waiting_submission BEFORE UPDATE OF submission ON work_waiting
WHEN OLD.submission <> 0 AND NEW.submission <> OLD.submission
BEGIN
    SELECT RAISE(ABORT, 'the submission number of a work item does not change');
END;
-- Foreign SQL leaves the number to us.
CREATE TRIGGER number_work_items_insert AFTER INSERT ON work_items WHEN NEW.submission = 0
BEGIN
    UPDATE work_counters SET submissions = submissions + 1;
    UPDATE work_items SET submission = (SELECT submissions FROM work_counters)
    WHERE work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER number_work_waiting_insert AFTER INSERT ON work_waiting WHEN NEW.submission = 0
BEGIN
    UPDATE work_counters SET submissions = submissions + 1;
    UPDATE work_waiting SET submission = (SELECT submissions FROM work_counters)
    WHERE work_item_id = NEW.work_item_id;
END;

-- An item moves between its two tables by an INSERT there, then a DELETE here: the DELETE finds the
-- token in the other table and leaves the floor alone. The row there must be the same item: pending
-- with this token, on its way out after a lease, or one entry further on its way in.
DROP TRIGGER check_work_items_insert;
CREATE TRIGGER check_work_items_insert BEFORE INSERT ON work_items
WHEN NEW.status IS NOT 'pending'
     OR EXISTS (SELECT 1 FROM work_waiting WHERE work_item_id = NEW.work_item_id
                AND NOT (token = NEW.token AND entries = NEW.entries - 1))
BEGIN
    SELECT RAISE(ABORT, 'a work item begins as pending') WHERE NEW.status IS NOT 'pending';
    SELECT RAISE(ABORT, 'a work item of this work_item_id is in work_waiting');
END;
DROP TRIGGER check_work_waiting_insert;
CREATE TRIGGER check_work_waiting_insert BEFORE INSERT ON work_waiting
WHEN EXISTS (SELECT 1 FROM work_items WHERE work_item_id = NEW.work_item_id
             AND NOT (status = 'pending' AND token = NEW.token AND attempts = NEW.attempts
                      AND attempts > 0))
BEGIN
    SELECT RAISE(ABORT, 'a work item of this work_item_id is in work_items');
END;
CREATE TRIGGER raise_work_items_floor AFTER DELETE ON work_items
WHEN OLD.token > (SELECT token_floor FROM work_counters)
     AND NOT EXISTS (SELECT 1 FROM work_waiting
                     WHERE work_item_id = OLD.work_item_id AND token >= OLD.token)
BEGIN
    UPDATE work_counters SET token_floor = OLD.token;
END;
CREATE TRIGGER raise_work_waiting_floor AFTER DELETE ON work_waiting
WHEN OLD.token > (SELECT token_floor FROM work_counters)
     AND NOT EXISTS (SELECT 1 FROM work_items
                     WHERE work_item_id = OLD.work_item_id AND token >= OLD.token)
BEGIN
    UPDATE work_counters SET token_floor = OLD.token;
END;
-- INSERT OR REPLACE removes a row and fires no DELETE trigger, unless recursive_triggers is on.
CREATE TRIGGER raise_work_items_replaced BEFORE INSERT ON work_items
WHEN EXISTS (SELECT 1 FROM work_items
             WHERE work_item_id = NEW.work_item_id AND token > NEW.token)
BEGIN
    UPDATE work_counters SET token_floor = max(token_floor,
        (SELECT token FROM work_items WHERE work_item_id = NEW.work_item_id));
END;
CREATE TRIGGER raise_work_waiting_replaced BEFORE INSERT ON work_waiting
WHEN EXISTS (SELECT 1 FROM work_waiting
             WHERE work_item_id = NEW.work_item_id AND token > NEW.token)
BEGIN
    UPDATE work_counters SET token_floor = max(token_floor,
        (SELECT token FROM work_waiting WHERE work_item_id = NEW.work_item_id));
END;

-- As before, with the floor: a lease of SQL that knows nothing of our columns gets its token here.
DROP TRIGGER record_work_items_update;
CREATE TRIGGER record_work_items_update AFTER UPDATE OF status ON work_items
WHEN NEW.status <> OLD.status
BEGIN
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, lease_holder,
                              retry_count, message, at)
    VALUES (NEW.work_item_id, NEW.task_id, OLD.status, NEW.status,
            CASE WHEN NEW.status = 'in_progress' AND NEW.token = OLD.token
                 THEN max(NEW.token, (SELECT token_floor FROM work_counters)) + 1
                 ELSE NEW.token END,
            coalesce(NEW.lease_holder, OLD.lease_holder), NEW.retry_count,
            CASE WHEN NEW.status IN ('in_progress', 'completed') THEN NULL
                 ELSE NEW.error_message END,
            CASE WHEN NEW.updated_at IS OLD.updated_at
                 THEN strftime('%Y-%m-%d %H:%M:%f000', 'now') ELSE NEW.updated_at END);
END;
CREATE TRIGGER update_work_items_timestamp AFTER UPDATE OF
    work_item_id, task_id, work_type, status, priority, lease_holder, lease_acquired_at,
    lease_expires_at, heartbeat_at, retry_count, max_retries, input_data, output_data,
    error_message, created_at, started_at, completed_at, updated_at, token, attempts,
    lease_boot_id, lease_deadline_ns, entries
ON work_items
WHEN (NEW.updated_at IS OLD.updated_at
      AND NEW.updated_at IS NOT strftime('%Y-%m-%d %H:%M:%f000', 'now'))
     OR (NEW.status = 'in_progress'
         AND CASE OLD.status
             WHEN 'pending' THEN NEW.token = OLD.token
             ELSE NEW.lease_expires_at <> OLD.lease_expires_at
                  AND NEW.lease_deadline_ns = OLD.lease_deadline_ns END)
BEGIN
    UPDATE work_items SET token = max(NEW.token, (SELECT token_floor FROM work_counters)) + 1,
                          attempts = OLD.attempts + 1,
                          lease_boot_id = NULL, lease_deadline_ns = NULL
    WHERE work_item_id = NEW.work_item_id AND NEW.status = 'in_progress'
          AND OLD.status = 'pending' AND NEW.token = OLD.token;
    UPDATE work_items SET lease_boot_id = NULL, lease_deadline_ns = NULL
    WHERE work_item_id = NEW.work_item_id AND NEW.status = 'in_progress'
          AND OLD.status = 'in_progress' AND NEW.lease_expires_at <> OLD.lease_expires_at
          AND NEW.lease_deadline_ns = OLD.lease_deadline_ns;
    -- On an ended row nothing but this may be set.
    UPDATE work_items SET updated_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
    WHERE work_item_id = NEW.work_item_id AND NEW.updated_at IS OLD.updated_at
          AND updated_at IS NOT strftime('%Y-%m-%d %H:%M:%f000', 'now');
END;

-- Keys.
ALTER TABLE idempotency_keys ADD COLUMN expires_boot_id TEXT; -- with expires_deadline_ns: the boot
ALTER TABLE idempotency_keys ADD COLUMN expires_deadline_ns INTEGER; -- clock decides in that boot,
                                                              -- else expires_at does
CREATE INDEX idx_idempotency_keys_clock ON idempotency_keys(expires_boot_id, expires_deadline_ns)
    WHERE expires_boot_id IS NOT NULL;
-- SQL that moves expires_at means the wall clock.
CREATE TRIGGER note_idempotency_keys_expiry AFTER UPDATE OF expires_at ON idempotency_keys
WHEN NEW.expires_at IS NOT OLD.expires_at AND NEW.expires_boot_id IS NOT NULL
     AND NEW.expires_deadline_ns IS OLD.expires_deadline_ns
BEGIN
    UPDATE idempotency_keys SET expires_boot_id = NULL, expires_deadline_ns = NULL
    WHERE idempotency_key = NEW.idempotency_key;
END;
CREATE TRIGGER raise_idempotency_keys_floor AFTER DELETE ON idempotency_keys
WHEN OLD.owner_token > (SELECT owner_token_floor FROM work_counters)
BEGIN
    UPDATE work_counters SET owner_token_floor = OLD.owner_token;
END;
CREATE TRIGGER raise_idempotency_keys_replaced BEFORE INSERT ON idempotency_keys
WHEN EXISTS (SELECT 1 FROM idempotency_keys WHERE idempotency_key = NEW.idempotency_key
             AND owner_token > NEW.owner_token)
BEGIN
    UPDATE work_counters SET owner_token_floor = max(owner_token_floor,
        (SELECT owner_token FROM idempotency_keys WHERE idempotency_key = NEW.idempotency_key));
END;
