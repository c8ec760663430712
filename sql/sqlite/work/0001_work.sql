-- version: 0.30.0
-- Tasks, leased work items, checkpoints, idempotency keys. Columns, defaults, foreign-key actions,
-- indexes and the triggers update_work_items_timestamp, check_work_items_status,
-- check_checkpoints_type and check_idempotency_keys_status are what users of the recovery schema
-- 0.30.0 know, and their SQL runs here unchanged. Columns below "ours" have defaults for that reason.
--
-- Times are UTC text: 2026-01-29 10:20:30, with .ffffff when we write them. What a decision or an
-- order depends on is checked for that form, because text compares as text.
--
-- Guards are triggers by column list: they never see updated_at, nor a work_item_id or task_id that
-- a foreign key sets NULL. SQLite's triggers cannot change NEW. So whoever sets updated_at and token
-- himself (we do) pays nothing; for SQL that leaves them unchanged a trigger writes the row again.
-- It stops by itself, also with recursive_triggers on: 'now' is one moment in one statement, and
-- the row that already has it is left alone.
--
-- INSERT OR REPLACE is a DELETE and an INSERT, and guarded as those are. A connection without
-- PRAGMA foreign_keys=ON can do what it likes to the references; SQLite keeps no such setting in
-- the file.

-- Lists of three and more are written out with OR here: for IN of so many SQLite builds a table, at
-- every row that a trigger or a CHECK looks at, and that was a third of what a claim costs.
CREATE TABLE tasks (
    task_id     TEXT NOT NULL PRIMARY KEY
                CHECK (typeof(task_id) = 'text' AND length(CAST(task_id AS BLOB)) BETWEEN 1 AND 200),
    title       TEXT,
    status      TEXT NOT NULL DEFAULT 'pending'
                CHECK (status = 'pending' OR status = 'running' OR status = 'succeeded'
                       OR status = 'failed' OR status = 'cancelled'),
    created_at  TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at  TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    metadata    TEXT,
    -- ours
    status_by   TEXT NOT NULL DEFAULT 'items' CHECK (status_by IN ('items', 'user')),
    derivations INTEGER NOT NULL DEFAULT 0 -- +1 whenever the status is derived from the items: a
                                           -- change of status that leaves it alone is the user's
                CHECK (typeof(derivations) = 'integer' AND derivations >= 0)
) WITHOUT ROWID;
CREATE INDEX idx_tasks_status ON tasks(status, created_at);

-- A status that somebody chose: at the insert anything but the default.
CREATE TRIGGER note_tasks_user_insert AFTER INSERT ON tasks
WHEN NEW.status <> 'pending' AND NEW.status_by = 'items' AND NEW.derivations = 0
BEGIN
    UPDATE tasks SET status_by = 'user' WHERE task_id = NEW.task_id;
END;
CREATE TRIGGER note_tasks_user_update AFTER UPDATE OF status ON tasks
WHEN NEW.status <> OLD.status AND NEW.status_by = 'items' AND OLD.status_by = 'items'
     AND NEW.derivations = OLD.derivations
BEGIN
    UPDATE tasks SET status_by = 'user' WHERE task_id = NEW.task_id;
END;
CREATE TRIGGER update_tasks_timestamp AFTER UPDATE OF title, status, metadata ON tasks
WHEN NEW.updated_at IS OLD.updated_at
     AND NEW.updated_at IS NOT strftime('%Y-%m-%d %H:%M:%f000', 'now')
BEGIN
    UPDATE tasks SET updated_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
    WHERE task_id = NEW.task_id;
END;
CREATE TRIGGER check_tasks_identity BEFORE UPDATE OF task_id, created_at ON tasks
WHEN NEW.task_id IS NOT OLD.task_id OR NEW.created_at IS NOT OLD.created_at
BEGIN
    SELECT RAISE(ABORT, 'task_id and created_at of a task do not change');
END;

-- Without rowid: every index then ends in work_item_id by itself, so the one on (status, priority,
-- created_at) gives the claim its whole order (priority, age, id) without a sort, and an id is found
-- in one tree.
CREATE TABLE work_items (
    work_item_id      TEXT NOT NULL PRIMARY KEY
                      CHECK (typeof(work_item_id) = 'text'
                             AND length(CAST(work_item_id AS BLOB)) BETWEEN 1 AND 200),
    task_id           TEXT NOT NULL REFERENCES tasks(task_id) ON DELETE CASCADE,
    work_type         TEXT NOT NULL
                      CHECK (typeof(work_type) = 'text'
                             AND length(CAST(work_type AS BLOB)) BETWEEN 1 AND 200),
    status            TEXT NOT NULL DEFAULT 'pending'
                      CHECK (status = 'pending' OR status = 'in_progress' OR status = 'completed'
                             OR status = 'failed' OR status = 'expired'),
    priority          INTEGER NOT NULL DEFAULT 0
                      CHECK (typeof(priority) = 'integer' AND priority BETWEEN -1000000 AND 1000000),
    lease_holder      TEXT,
    lease_acquired_at TIMESTAMP,
    lease_expires_at  TIMESTAMP
                      CHECK (lease_expires_at IS NULL OR lease_expires_at GLOB
                             '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    heartbeat_at      TIMESTAMP,
    -- No upper bound: the watchdog statement that users know ends at 4 of 3. We stop at max_retries.
    retry_count       INTEGER NOT NULL DEFAULT 0
                      CHECK (typeof(retry_count) = 'integer' AND retry_count >= 0),
    max_retries       INTEGER NOT NULL DEFAULT 3
                      CHECK (typeof(max_retries) = 'integer' AND max_retries BETWEEN 0 AND 1000000),
    input_data        TEXT, -- JSON is checked by the API: SQL examples hold {...}
    output_data       TEXT,
    error_message     TEXT,
    created_at        TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
                      CHECK (created_at GLOB
                             '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    started_at        TIMESTAMP,
    completed_at      TIMESTAMP,
    updated_at        TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    -- ours
    token             INTEGER NOT NULL DEFAULT 0 -- fencing: +1 at every lease, never down
                      CHECK (typeof(token) = 'integer' AND token >= 0),
    attempts          INTEGER NOT NULL DEFAULT 0 -- leases so far
                      CHECK (typeof(attempts) = 'integer' AND attempts >= 0),
    lease_boot_id     TEXT,    -- with lease_deadline_ns: when the lease ends, on CLOCK_BOOTTIME of
    lease_deadline_ns INTEGER, -- that boot. NULL: lease_expires_at decides (foreign SQL leased it).
                               -- Without meaning unless in_progress
    entries           INTEGER NOT NULL DEFAULT 0 -- times it came in from work_waiting
                      CHECK (typeof(entries) = 'integer' AND entries >= 0),
    CONSTRAINT only_a_leased_item_has_a_holder
        CHECK ((status = 'in_progress') = (lease_holder IS NOT NULL)),
    CONSTRAINT only_a_leased_item_has_an_expiry
        CHECK ((status = 'in_progress') = (lease_expires_at IS NOT NULL)),
    CONSTRAINT only_an_ended_item_has_an_end
        CHECK (CASE status WHEN 'completed' THEN completed_at IS NOT NULL
                           WHEN 'failed' THEN 1
                           ELSE completed_at IS NULL END)
) WITHOUT ROWID;
CREATE INDEX idx_work_items_task ON work_items(task_id, status, created_at DESC);
CREATE INDEX idx_work_items_status_priority
    ON work_items(status, priority DESC, created_at ASC); -- claim
CREATE INDEX idx_work_items_lease_expiry ON work_items(lease_expires_at)
    WHERE status = 'in_progress';
CREATE INDEX idx_work_items_lease_holder ON work_items(lease_holder, status)
    WHERE lease_holder IS NOT NULL;
-- Ours: claims with a filter. Only pending items are in them.
CREATE INDEX idx_work_items_claim_type ON work_items(work_type, priority DESC, created_at)
    WHERE status = 'pending';
CREATE INDEX idx_work_items_claim_task ON work_items(task_id, priority DESC, created_at)
    WHERE status = 'pending';

-- An item that cannot be claimed yet. It is in one of the two tables, never in both: to let one in,
-- DELETE it here, INSERT it there with entries + 1, then
--     UPDATE checkpoints SET work_item_id = item_id WHERE item_id = ? AND work_item_id IS NULL
-- and the same for idempotency_keys. To send one back, UPDATE its status to pending (which writes
-- the history), DELETE it there, INSERT it here.
CREATE TABLE work_waiting (
    work_item_id    TEXT NOT NULL PRIMARY KEY
                    CHECK (typeof(work_item_id) = 'text'
                           AND length(CAST(work_item_id AS BLOB)) BETWEEN 1 AND 200),
    task_id         TEXT NOT NULL REFERENCES tasks(task_id) ON DELETE CASCADE,
    work_type       TEXT NOT NULL
                    CHECK (typeof(work_type) = 'text'
                           AND length(CAST(work_type AS BLOB)) BETWEEN 1 AND 200),
    priority        INTEGER NOT NULL DEFAULT 0
                    CHECK (typeof(priority) = 'integer' AND priority BETWEEN -1000000 AND 1000000),
    retry_count     INTEGER NOT NULL DEFAULT 0
                    CHECK (typeof(retry_count) = 'integer' AND retry_count >= 0),
    max_retries     INTEGER NOT NULL DEFAULT 3
                    CHECK (typeof(max_retries) = 'integer' AND max_retries BETWEEN 0 AND 1000000),
    attempts        INTEGER NOT NULL DEFAULT 0
                    CHECK (typeof(attempts) = 'integer' AND attempts >= 0),
    token           INTEGER NOT NULL DEFAULT 0 CHECK (typeof(token) = 'integer' AND token >= 0),
    entries         INTEGER NOT NULL DEFAULT 0
                    CHECK (typeof(entries) = 'integer' AND entries >= 0),
    input_data      TEXT,
    error_message   TEXT,
    created_at      TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
                    CHECK (created_at GLOB
                           '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    started_at      TIMESTAMP,
    updated_at      TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    reason          TEXT NOT NULL CHECK (reason = 'delay' OR reason = 'backoff'
                                                 OR reason = 'dependency'),
    due_boot_id     TEXT,    -- with due_deadline_ns: CLOCK_BOOTTIME of that boot decides, while it
    due_deadline_ns INTEGER, -- lasts
    due_at          TIMESTAMP -- else the wall clock
                    CHECK (due_at IS NULL OR due_at GLOB
                           '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    waits_for       INTEGER NOT NULL DEFAULT 0 -- items of work_dependencies that have not completed
                    CHECK (typeof(waits_for) = 'integer' AND waits_for >= 0),
    CONSTRAINT who_waits_waits_for_something CHECK (due_at IS NOT NULL OR waits_for > 0),
    CONSTRAINT a_boot_and_its_clock CHECK ((due_boot_id IS NULL) = (due_deadline_ns IS NULL))
) WITHOUT ROWID;
CREATE INDEX idx_work_waiting_due ON work_waiting(due_at) WHERE waits_for = 0;
CREATE INDEX idx_work_waiting_clock ON work_waiting(due_boot_id, due_deadline_ns)
    WHERE waits_for = 0;
CREATE INDEX idx_work_waiting_task ON work_waiting(task_id);

-- Which item waits for which. Either end may be in either table.
CREATE TABLE work_dependencies (
    work_item_id TEXT NOT NULL,
    after_id     TEXT NOT NULL,
    PRIMARY KEY (work_item_id, after_id),
    CONSTRAINT no_item_waits_for_itself CHECK (work_item_id <> after_id)
) WITHOUT ROWID;
CREATE INDEX idx_work_dependencies_after ON work_dependencies(after_id);

-- One row a transition, written by the triggers below, so that no SQL can forget it. from_status is
-- NULL for a submit. Rows go by retention only, oldest first; seq says what came before what, and is
-- not AUTOINCREMENT, which costs every transition another page.
CREATE TABLE work_history (
    seq          INTEGER PRIMARY KEY,
    work_item_id TEXT NOT NULL,
    task_id      TEXT NOT NULL,
    from_status  TEXT,
    to_status    TEXT NOT NULL,
    token        INTEGER NOT NULL,
    lease_holder TEXT, -- who has it, or had it until then
    retry_count  INTEGER NOT NULL,
    message      TEXT, -- the error of the transition, or why a submitted item waits
    at           TIMESTAMP NOT NULL,
    CONSTRAINT only_transitions_that_exist CHECK (CASE coalesce(from_status, '')
        WHEN '' THEN to_status = 'pending'
        WHEN 'pending' THEN to_status IN ('in_progress', 'failed')
        WHEN 'in_progress' THEN to_status = 'completed' OR to_status = 'failed'
                                OR to_status = 'pending' OR to_status = 'expired'
        WHEN 'expired' THEN to_status IN ('pending', 'failed')
        ELSE 0 END)
);
CREATE INDEX idx_work_history_item ON work_history(work_item_id);

CREATE TRIGGER check_work_history_append_only BEFORE UPDATE ON work_history
BEGIN
    SELECT RAISE(ABORT, 'the history of work items does not change');
END;

-- What an item may become. UPDATE OF fires for a column that is set, also to what it was.
CREATE TRIGGER check_work_items_status BEFORE UPDATE OF
    work_item_id, task_id, work_type, status, priority, lease_holder, lease_acquired_at,
    lease_expires_at, heartbeat_at, retry_count, max_retries, input_data, output_data,
    error_message, created_at, started_at, completed_at, token, attempts, lease_boot_id,
    lease_deadline_ns, entries
ON work_items
WHEN NOT CASE OLD.status
         WHEN 'pending' THEN NEW.status = 'pending' OR NEW.status = 'in_progress'
                             OR NEW.status = 'failed'
         WHEN 'in_progress'
             THEN NEW.status = 'completed' OR NEW.status = 'failed' OR NEW.status = 'pending'
                  OR NEW.status = 'expired'
                  OR (NEW.status = 'in_progress' AND NEW.lease_holder IS OLD.lease_holder)
         WHEN 'expired' THEN NEW.status = 'expired' OR NEW.status = 'pending'
                             OR NEW.status = 'failed'
         ELSE 0 END
     OR NEW.token < OLD.token OR NEW.attempts < OLD.attempts OR NEW.entries < OLD.entries
     OR NEW.work_item_id <> OLD.work_item_id OR NEW.task_id <> OLD.task_id
     OR NEW.created_at <> OLD.created_at
BEGIN
    SELECT RAISE(ABORT, 'a work item that is completed or failed does not change')
    WHERE OLD.status IN ('completed', 'failed');
    SELECT RAISE(ABORT, 'invalid status: pending, in_progress, completed, failed or expired')
    WHERE NEW.status IS NULL
          OR NEW.status NOT IN ('pending', 'in_progress', 'completed', 'failed', 'expired');
    SELECT RAISE(ABORT, 'the lease of a work item is taken while it is pending, not from its holder')
    WHERE OLD.status = 'in_progress' AND NEW.status = 'in_progress'
          AND NEW.lease_holder IS NOT OLD.lease_holder;
    SELECT RAISE(ABORT, 'token, attempts and entries of a work item do not go down')
    WHERE NEW.token < OLD.token OR NEW.attempts < OLD.attempts OR NEW.entries < OLD.entries;
    SELECT RAISE(ABORT, 'work_item_id, task_id and created_at of a work item do not change')
    WHERE NEW.work_item_id <> OLD.work_item_id OR NEW.task_id <> OLD.task_id
          OR NEW.created_at <> OLD.created_at;
    SELECT RAISE(ABORT, 'a work item cannot go from this status to that one');
END;

CREATE TRIGGER check_work_items_insert BEFORE INSERT ON work_items
WHEN NEW.status IS NOT 'pending'
     OR EXISTS (SELECT 1 FROM work_waiting WHERE work_item_id = NEW.work_item_id)
BEGIN
    SELECT RAISE(ABORT, 'a work item begins as pending') WHERE NEW.status IS NOT 'pending';
    SELECT RAISE(ABORT, 'a work item of this work_item_id is in work_waiting');
END;

CREATE TRIGGER check_work_waiting_insert BEFORE INSERT ON work_waiting
WHEN EXISTS (SELECT 1 FROM work_items WHERE work_item_id = NEW.work_item_id)
BEGIN
    SELECT RAISE(ABORT, 'a work item of this work_item_id is in work_items');
END;

CREATE TRIGGER check_work_waiting_update BEFORE UPDATE OF
    work_item_id, task_id, created_at, token, attempts, entries ON work_waiting
WHEN NEW.work_item_id <> OLD.work_item_id OR NEW.task_id <> OLD.task_id
     OR NEW.created_at <> OLD.created_at OR NEW.token < OLD.token
     OR NEW.attempts < OLD.attempts OR NEW.entries < OLD.entries
BEGIN
    SELECT RAISE(ABORT, 'work_item_id, task_id and created_at of a work item do not change')
    WHERE NEW.work_item_id <> OLD.work_item_id OR NEW.task_id <> OLD.task_id
          OR NEW.created_at <> OLD.created_at;
    SELECT RAISE(ABORT, 'token, attempts and entries of a work item do not go down');
END;

CREATE TRIGGER record_work_items_insert AFTER INSERT ON work_items
WHEN NEW.entries = 0
BEGIN
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, retry_count, at)
    VALUES (NEW.work_item_id, NEW.task_id, NULL, NEW.status, NEW.token, NEW.retry_count,
            NEW.created_at);
END;

CREATE TRIGGER record_work_waiting_insert AFTER INSERT ON work_waiting
WHEN NEW.entries = 0 AND NEW.attempts = 0
BEGIN
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, retry_count,
                              message, at)
    VALUES (NEW.work_item_id, NEW.task_id, NULL, 'pending', NEW.token, NEW.retry_count, NEW.reason,
            NEW.created_at);
END;

-- The token is the new one, also where update_work_items_timestamp is about to raise it. `at` is
-- updated_at where it was set.
CREATE TRIGGER record_work_items_update AFTER UPDATE OF status ON work_items
WHEN NEW.status <> OLD.status
BEGIN
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, lease_holder,
                              retry_count, message, at)
    VALUES (NEW.work_item_id, NEW.task_id, OLD.status, NEW.status,
            NEW.token + (NEW.status = 'in_progress' AND NEW.token = OLD.token),
            coalesce(NEW.lease_holder, OLD.lease_holder), NEW.retry_count,
            CASE WHEN NEW.status IN ('in_progress', 'completed') THEN NULL
                 ELSE NEW.error_message END,
            CASE WHEN NEW.updated_at IS OLD.updated_at
                 THEN strftime('%Y-%m-%d %H:%M:%f000', 'now') ELSE NEW.updated_at END);
END;

-- What SQL that knows nothing of our columns leaves undone, in one trigger because every write pays
-- for each. A lease gets the token that it left alone. A lease or heartbeat of such SQL is decided by
-- the wall clock from there on. And the time of the change, of course.
CREATE TRIGGER update_work_items_timestamp AFTER UPDATE ON work_items
WHEN (NEW.updated_at IS OLD.updated_at
      AND NEW.updated_at IS NOT strftime('%Y-%m-%d %H:%M:%f000', 'now'))
     OR (NEW.status = 'in_progress'
         AND CASE OLD.status
             WHEN 'pending' THEN NEW.token = OLD.token
             ELSE NEW.lease_expires_at <> OLD.lease_expires_at
                  AND NEW.lease_deadline_ns = OLD.lease_deadline_ns END)
BEGIN
    UPDATE work_items SET token = NEW.token + 1, attempts = OLD.attempts + 1,
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

-- Edges go with an item that has ended; one that moves between the two tables is pending.
CREATE TRIGGER remove_work_items_edges AFTER DELETE ON work_items
WHEN OLD.status IN ('completed', 'failed')
BEGIN
    DELETE FROM work_dependencies WHERE work_item_id = OLD.work_item_id;
    DELETE FROM work_dependencies WHERE after_id = OLD.work_item_id;
END;
CREATE TRIGGER remove_tasks_edges BEFORE DELETE ON tasks
BEGIN
    DELETE FROM work_dependencies WHERE work_item_id IN
        (SELECT work_item_id FROM work_items WHERE task_id = OLD.task_id
         UNION ALL SELECT work_item_id FROM work_waiting WHERE task_id = OLD.task_id);
END;

-- The last sequence_number given to a task. Kept by the insert of a checkpoint; survives the
-- checkpoints, so that no number comes twice.
CREATE TABLE checkpoint_counters (
    task_id TEXT NOT NULL PRIMARY KEY REFERENCES tasks(task_id) ON DELETE CASCADE,
    last    INTEGER NOT NULL CHECK (typeof(last) = 'integer' AND last >= 0)
) WITHOUT ROWID;
CREATE TRIGGER check_checkpoint_counters_update BEFORE UPDATE ON checkpoint_counters
WHEN NEW.last < OLD.last OR NEW.task_id <> OLD.task_id
BEGIN
    SELECT RAISE(ABORT, 'the counter of a task''s checkpoints does not go down');
END;
CREATE TRIGGER check_checkpoint_counters_delete BEFORE DELETE ON checkpoint_counters
WHEN EXISTS (SELECT 1 FROM tasks WHERE task_id = OLD.task_id)
BEGIN
    SELECT RAISE(ABORT, 'the counter of a task''s checkpoints goes with the task');
END;

-- The next number, inside the transaction of the insert:
--     (SELECT coalesce(max(last), 0) + 1 FROM checkpoint_counters WHERE task_id = ?)
CREATE TABLE checkpoints (
    checkpoint_id   TEXT NOT NULL PRIMARY KEY
                    CHECK (typeof(checkpoint_id) = 'text'
                           AND length(CAST(checkpoint_id AS BLOB)) BETWEEN 1 AND 200),
    task_id         TEXT NOT NULL REFERENCES tasks(task_id) ON DELETE CASCADE,
    work_item_id    TEXT REFERENCES work_items(work_item_id) ON DELETE SET NULL,
    checkpoint_type TEXT NOT NULL,
    sequence_number INTEGER NOT NULL CHECK (typeof(sequence_number) = 'integer'),
    snapshot_data   TEXT NOT NULL,
    metadata        TEXT,
    created_at      TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    -- ours
    item_id         TEXT, -- work_item_id as it was given; stays when the item goes
    verified        INTEGER NOT NULL DEFAULT 1 CHECK (verified IN (0, 1)),
    CONSTRAINT one_item CHECK (work_item_id IS NULL OR item_id IS NULL OR work_item_id = item_id)
);
CREATE UNIQUE INDEX idx_checkpoints_task_sequence ON checkpoints(task_id, sequence_number ASC);
CREATE INDEX idx_checkpoints_work_item ON checkpoints(work_item_id, sequence_number ASC)
    WHERE work_item_id IS NOT NULL;
CREATE INDEX idx_checkpoints_type ON checkpoints(checkpoint_type, created_at DESC);
CREATE INDEX idx_checkpoints_created_at ON checkpoints(created_at DESC);
CREATE INDEX idx_checkpoints_item ON checkpoints(item_id) WHERE item_id IS NOT NULL;
-- Ours: the newest of a type.
CREATE INDEX idx_checkpoints_task_type ON checkpoints(task_id, checkpoint_type, sequence_number);

CREATE TRIGGER check_checkpoints_type BEFORE INSERT ON checkpoints
WHEN NEW.checkpoint_type IS NULL OR NEW.checkpoint_type NOT IN
     ('iteration_start', 'iteration_end', 'tool_executed', 'llm_response', 'approval_point',
      'state_transition', 'manual_checkpoint', 'error_boundary')
BEGIN
    SELECT RAISE(ABORT, 'invalid checkpoint_type: iteration_start, iteration_end, tool_executed, llm_response, approval_point, state_transition, manual_checkpoint or error_boundary');
END;
CREATE TRIGGER check_checkpoints_sequence BEFORE INSERT ON checkpoints
WHEN NEW.sequence_number
     <= coalesce((SELECT last FROM checkpoint_counters WHERE task_id = NEW.task_id), 0)
BEGIN
    SELECT RAISE(ABORT, 'sequence_number must be above every one that the task has had');
END;
CREATE TRIGGER check_checkpoints_item BEFORE INSERT ON checkpoints
WHEN NEW.work_item_id IS NOT NULL AND EXISTS
     (SELECT 1 FROM work_items WHERE work_item_id = NEW.work_item_id AND task_id <> NEW.task_id)
BEGIN
    SELECT RAISE(ABORT, 'the work item of a checkpoint is one of the same task');
END;
CREATE TRIGGER check_checkpoints_immutable BEFORE UPDATE OF
    checkpoint_id, task_id, checkpoint_type, sequence_number, snapshot_data, metadata, created_at
ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'a checkpoint does not change');
END;
CREATE TRIGGER check_checkpoints_link BEFORE UPDATE OF work_item_id, item_id ON checkpoints
WHEN (OLD.item_id IS NOT NULL AND NEW.item_id IS NOT OLD.item_id)
     OR (OLD.item_id IS NULL AND NEW.item_id IS NOT OLD.work_item_id)
     OR (NEW.work_item_id IS NOT NULL AND NEW.work_item_id IS NOT NEW.item_id)
BEGIN
    SELECT RAISE(ABORT, 'a checkpoint stays with its work item');
END;
CREATE TRIGGER count_checkpoints_insert AFTER INSERT ON checkpoints
BEGIN
    -- Not by ON CONFLICT: OR IGNORE or OR FAIL of the statement outside would rule here, too.
    INSERT INTO checkpoint_counters (task_id, last)
    SELECT NEW.task_id, 0
    WHERE NOT EXISTS (SELECT 1 FROM checkpoint_counters WHERE task_id = NEW.task_id);
    UPDATE checkpoint_counters SET last = NEW.sequence_number
    WHERE task_id = NEW.task_id AND last < NEW.sequence_number;
END;
CREATE TRIGGER keep_checkpoints_item AFTER INSERT ON checkpoints
WHEN NEW.item_id IS NULL AND NEW.work_item_id IS NOT NULL
BEGIN
    UPDATE checkpoints SET item_id = NEW.work_item_id WHERE checkpoint_id = NEW.checkpoint_id;
END;

-- What a checkpoint claims about the world. Written with it, looked at again when it is used.
CREATE TABLE checkpoint_evidence (
    task_id       TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL REFERENCES checkpoints(checkpoint_id) ON DELETE CASCADE,
    ordinal       INTEGER NOT NULL CHECK (typeof(ordinal) = 'integer' AND ordinal >= 0),
    kind          TEXT NOT NULL
                  CHECK (kind IN ('file_exists', 'file_sha256', 'command_exit', 'row_exists')),
    subject       TEXT NOT NULL,
    expected      TEXT,
    PRIMARY KEY (checkpoint_id, ordinal)
) WITHOUT ROWID;
CREATE TRIGGER check_checkpoint_evidence_immutable BEFORE UPDATE ON checkpoint_evidence
BEGIN
    SELECT RAISE(ABORT, 'the evidence of a checkpoint does not change');
END;

-- One row a piece of evidence each time somebody looked.
CREATE TABLE checkpoint_results (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id       TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL REFERENCES checkpoints(checkpoint_id) ON DELETE CASCADE,
    ordinal       INTEGER NOT NULL CHECK (typeof(ordinal) = 'integer' AND ordinal >= 0),
    at            TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    ok            INTEGER NOT NULL CHECK (ok IN (0, 1)),
    detail        TEXT
);
CREATE INDEX idx_checkpoint_results_checkpoint ON checkpoint_results(checkpoint_id, ordinal);
CREATE TRIGGER check_checkpoint_results_append_only BEFORE UPDATE ON checkpoint_results
BEGIN
    SELECT RAISE(ABORT, 'the results of looking at evidence do not change');
END;

-- Where retention may put what it removes. Outlives the task.
CREATE TABLE checkpoints_archive (
    checkpoint_id   TEXT NOT NULL,
    task_id         TEXT NOT NULL,
    work_item_id    TEXT,
    checkpoint_type TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    snapshot_data   TEXT NOT NULL,
    metadata        TEXT,
    created_at      TIMESTAMP NOT NULL,
    item_id         TEXT,
    verified        INTEGER NOT NULL,
    archived_at     TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (task_id, checkpoint_id)
);
CREATE TRIGGER check_checkpoints_archive_immutable BEFORE UPDATE ON checkpoints_archive
BEGIN
    SELECT RAISE(ABORT, 'an archived checkpoint does not change');
END;

CREATE TABLE idempotency_keys (
    idempotency_key   TEXT NOT NULL PRIMARY KEY
                      CHECK (typeof(idempotency_key) = 'text'
                             AND length(CAST(idempotency_key AS BLOB)) BETWEEN 1 AND 200),
    task_id           TEXT REFERENCES tasks(task_id) ON DELETE SET NULL,
    work_item_id      TEXT REFERENCES work_items(work_item_id) ON DELETE SET NULL,
    request_hash      TEXT NOT NULL, -- its form is checked by the API: SQL examples hold sha256:abc123...
    response_data     TEXT,
    status            TEXT NOT NULL DEFAULT 'pending',
    created_at        TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    completed_at      TIMESTAMP,
    expires_at        TIMESTAMP
                      CHECK (expires_at IS NULL OR expires_at GLOB
                             '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    -- ours
    item_id           TEXT, -- work_item_id as it was given; stays when the item goes
    owner_token       INTEGER NOT NULL DEFAULT 0 -- +1 whenever the key is taken
                      CHECK (typeof(owner_token) = 'integer' AND owner_token >= 0),
    owner             TEXT,
    lease_boot_id     TEXT,
    lease_deadline_ns INTEGER, -- NULL: lease_expires_at decides; that NULL, too: no lease
    lease_expires_at  TIMESTAMP
                      CHECK (lease_expires_at IS NULL OR lease_expires_at GLOB
                             '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    CONSTRAINT only_an_ended_key_has_an_end
        CHECK ((status = 'pending') = (completed_at IS NULL)),
    CONSTRAINT only_an_ended_key_has_a_response
        CHECK (status <> 'pending' OR response_data IS NULL),
    CONSTRAINT one_item CHECK (work_item_id IS NULL OR item_id IS NULL OR work_item_id = item_id)
) WITHOUT ROWID;
CREATE INDEX idx_idempotency_keys_task ON idempotency_keys(task_id, created_at DESC)
    WHERE task_id IS NOT NULL;
CREATE INDEX idx_idempotency_keys_work_item ON idempotency_keys(work_item_id, created_at DESC)
    WHERE work_item_id IS NOT NULL;
CREATE INDEX idx_idempotency_keys_expires_at ON idempotency_keys(expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX idx_idempotency_keys_status ON idempotency_keys(status, created_at DESC);
CREATE INDEX idx_idempotency_keys_item ON idempotency_keys(item_id) WHERE item_id IS NOT NULL;

-- pending -> completed or failed, and there it stays. A key that can expire may be taken anew once
-- it has (whose clock says so, the API knows): back to pending with a higher owner_token.
CREATE TRIGGER check_idempotency_keys_status BEFORE UPDATE OF
    idempotency_key, request_hash, response_data, status, created_at, completed_at, expires_at,
    owner_token, owner, lease_boot_id, lease_deadline_ns, lease_expires_at
ON idempotency_keys
WHEN NOT CASE OLD.status
         WHEN 'pending'
             THEN NEW.status = 'completed' OR NEW.status = 'failed' OR NEW.status = 'pending'
                  AND (NEW.owner_token > OLD.owner_token
                       OR (NEW.request_hash IS OLD.request_hash
                           AND NEW.created_at IS OLD.created_at))
         ELSE NEW.status = 'pending' AND NEW.owner_token > OLD.owner_token
              AND OLD.expires_at IS NOT NULL
         END
     OR NEW.idempotency_key <> OLD.idempotency_key OR NEW.owner_token < OLD.owner_token
BEGIN
    SELECT RAISE(ABORT, 'invalid status: pending, completed or failed')
    WHERE NEW.status IS NULL OR NEW.status NOT IN ('pending', 'completed', 'failed');
    SELECT RAISE(ABORT, 'an idempotency key that is completed or failed does not change')
    WHERE OLD.status <> 'pending';
    SELECT RAISE(ABORT, 'key, hash and created_at of an idempotency key do not change, its owner_token does not go down');
END;
CREATE TRIGGER check_idempotency_keys_insert BEFORE INSERT ON idempotency_keys
WHEN NEW.status IS NOT 'pending'
BEGIN
    SELECT RAISE(ABORT, 'an idempotency key begins as pending');
END;
CREATE TRIGGER check_idempotency_keys_link BEFORE UPDATE OF work_item_id, item_id
ON idempotency_keys
WHEN NEW.owner_token = OLD.owner_token
     AND ((OLD.item_id IS NOT NULL AND NEW.item_id IS NOT OLD.item_id)
          OR (OLD.item_id IS NULL AND NEW.item_id IS NOT OLD.work_item_id)
          OR (NEW.work_item_id IS NOT NULL AND NEW.work_item_id IS NOT NEW.item_id))
BEGIN
    SELECT RAISE(ABORT, 'an idempotency key stays with its work item');
END;
CREATE TRIGGER keep_idempotency_keys_item AFTER INSERT ON idempotency_keys
WHEN NEW.item_id IS NULL AND NEW.work_item_id IS NOT NULL
BEGIN
    UPDATE idempotency_keys SET item_id = NEW.work_item_id
    WHERE idempotency_key = NEW.idempotency_key;
END;

CREATE TABLE schedules (
    schedule_id TEXT NOT NULL PRIMARY KEY
                CHECK (typeof(schedule_id) = 'text'
                       AND length(CAST(schedule_id AS BLOB)) BETWEEN 1 AND 200),
    cron        TEXT NOT NULL,
    timezone    TEXT NOT NULL DEFAULT 'UTC' CHECK (timezone = 'UTC'),
    work_type   TEXT NOT NULL,
    task_id     TEXT REFERENCES tasks(task_id) ON DELETE CASCADE, -- NULL: a task of its own a slot
    priority    INTEGER NOT NULL DEFAULT 0
                CHECK (typeof(priority) = 'integer' AND priority BETWEEN -1000000 AND 1000000),
    input_data  TEXT,
    max_retries INTEGER NOT NULL DEFAULT 3
                CHECK (typeof(max_retries) = 'integer' AND max_retries BETWEEN 0 AND 1000000),
    enabled     INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    next_slot   TIMESTAMP
                CHECK (next_slot IS NULL OR next_slot GLOB
                       '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    created_at  TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at  TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITHOUT ROWID;
CREATE INDEX idx_schedules_next ON schedules(next_slot) WHERE enabled = 1;
CREATE INDEX idx_schedules_task ON schedules(task_id) WHERE task_id IS NOT NULL;

-- A slot fires once: its row is inserted in the transaction of its item.
CREATE TABLE schedule_fires (
    schedule_id  TEXT NOT NULL REFERENCES schedules(schedule_id) ON DELETE CASCADE,
    slot         TIMESTAMP NOT NULL
                 CHECK (slot GLOB
                        '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]*'),
    work_item_id TEXT NOT NULL,
    PRIMARY KEY (schedule_id, slot)
) WITHOUT ROWID;
CREATE TRIGGER check_schedule_fires_append_only BEFORE UPDATE ON schedule_fires
BEGIN
    SELECT RAISE(ABORT, 'a slot that has fired does not change');
END;
