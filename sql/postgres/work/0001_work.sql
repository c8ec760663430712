-- version: 0.30.0
-- Tasks, leased work items, checkpoints, idempotency keys: the tables of sql/sqlite/work, which says
-- what each is for. Names compare byte by byte, as on every other backend. Different here:
--
-- * The server's clock decides leases and due times, so there are no columns of a boot clock.
-- * A guard is a BEFORE trigger whose WHEN holds the whole condition: its function is called only to
--   refuse. SQL that leaves updated_at or token alone gets them through NEW.
-- * Our own statements write the history of what they change, and count it in `steps`. A change of
--   status that leaves `steps` alone is recorded by a trigger, so that only other SQL pays for one.
-- * checkpoints is partitioned by task. A checkpoint_id is unique within its task.
-- * An insert of a checkpoint may leave sequence_number out: it is given, and returned.
-- * That no work_item_id is in work_items and work_waiting at once is checked against what is
--   committed or our own: two transactions that submit one id to both at the same moment pass, and
--   the later entry into work_items meets the primary key.
--
-- Functions that name tables carry the schema's search_path, so SQL from any session may fire them.
-- A refusal is a check_violation with the trigger's name as its constraint.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0]
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
              SCHEMA = TG_TABLE_SCHEMA;
END $$;

CREATE FUNCTION set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END $$;

CREATE TABLE tasks (
    task_id     text COLLATE "C" PRIMARY KEY CHECK (octet_length(task_id) BETWEEN 1 AND 200),
    title       text,
    status      text NOT NULL DEFAULT 'pending'
                CHECK (status IN ('pending', 'running', 'succeeded', 'failed', 'cancelled')),
    created_at  timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at  timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    metadata    text,
    -- ours
    status_by   text NOT NULL DEFAULT 'items' CHECK (status_by IN ('items', 'user')),
    derivations bigint NOT NULL DEFAULT 0 CHECK (derivations >= 0) -- +1 whenever the status is
                -- derived from the items: a change of status that leaves it alone is the user's
) WITH (fillfactor = 80);
CREATE INDEX idx_tasks_status ON tasks(status, created_at);

CREATE FUNCTION note_tasks_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.status_by := 'user';
    RETURN NEW;
END $$;
CREATE TRIGGER note_tasks_user_insert BEFORE INSERT ON tasks FOR EACH ROW
    WHEN (NEW.status <> 'pending' AND NEW.status_by = 'items' AND NEW.derivations = 0)
    EXECUTE FUNCTION note_tasks_user();
CREATE TRIGGER note_tasks_user_update BEFORE UPDATE OF status ON tasks FOR EACH ROW
    WHEN (NEW.status <> OLD.status AND NEW.status_by = 'items' AND OLD.status_by = 'items'
          AND NEW.derivations = OLD.derivations)
    EXECUTE FUNCTION note_tasks_user();
CREATE TRIGGER update_tasks_timestamp BEFORE UPDATE OF title, status, metadata ON tasks FOR EACH ROW
    WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
    EXECUTE FUNCTION set_updated_at();
CREATE TRIGGER check_tasks_identity BEFORE UPDATE OF task_id, created_at ON tasks FOR EACH ROW
    WHEN (NEW.task_id <> OLD.task_id OR NEW.created_at <> OLD.created_at)
    EXECUTE FUNCTION refuse('task_id and created_at of a task do not change');

-- The server reads a CHECK, and a trigger's WHEN, anew for every statement. What only concerns
-- columns that are written once is therefore guarded by column list, further below.
CREATE TABLE work_items (
    work_item_id      text COLLATE "C" PRIMARY KEY,
    task_id           text COLLATE "C" NOT NULL REFERENCES tasks(task_id) ON DELETE CASCADE,
    work_type         text COLLATE "C" NOT NULL,
    status            text COLLATE "C" NOT NULL DEFAULT 'pending',
    priority          integer NOT NULL DEFAULT 0,
    lease_holder      text COLLATE "C",
    lease_acquired_at timestamptz,
    lease_expires_at  timestamptz,
    heartbeat_at      timestamptz,
    -- No upper bound: the watchdog statement that users know ends at 4 of 3. We stop at max_retries.
    retry_count       integer NOT NULL DEFAULT 0,
    max_retries       integer NOT NULL DEFAULT 3,
    input_data        text,
    output_data       text,
    error_message     text,
    created_at        timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    started_at        timestamptz,
    completed_at      timestamptz,
    updated_at        timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    -- ours
    token             bigint NOT NULL DEFAULT 0,
    attempts          bigint NOT NULL DEFAULT 0,
    entries           bigint NOT NULL DEFAULT 0,
    steps             bigint NOT NULL DEFAULT 0, -- +1 with a change whose history is written by the
                      -- statement that makes it
    has_followers     boolean NOT NULL DEFAULT false, -- somebody waits for it
    CONSTRAINT only_a_leased_item_has_a_holder
        CHECK ((status = 'in_progress') = (lease_holder IS NOT NULL)),
    CONSTRAINT only_a_leased_item_has_an_expiry
        CHECK (CASE WHEN lease_expires_at IS NULL THEN status <> 'in_progress'
                    ELSE status = 'in_progress' AND isfinite(lease_expires_at) END),
    CONSTRAINT only_an_ended_item_has_an_end
        CHECK (CASE status WHEN 'completed' THEN completed_at IS NOT NULL
                           WHEN 'failed' THEN true
                           ELSE completed_at IS NULL
                                AND status IN ('pending', 'in_progress', 'expired') END)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX idx_work_items_task ON work_items(task_id, status, created_at DESC);
-- With the id behind, it gives the claim its whole order: priority, age, id. Ended items are in no
-- order that anybody asks for.
CREATE INDEX idx_work_items_status_priority
    ON work_items(status, priority DESC, created_at ASC, work_item_id)
    WHERE status IN ('pending', 'in_progress', 'expired');
CREATE INDEX idx_work_items_lease_expiry ON work_items(lease_expires_at)
    WHERE status = 'in_progress';
CREATE INDEX idx_work_items_lease_holder ON work_items(lease_holder, status)
    WHERE lease_holder IS NOT NULL;
-- Ours: claims with a filter. Only pending items are in them.
CREATE INDEX idx_work_items_claim_type
    ON work_items(work_type, priority DESC, created_at, work_item_id) WHERE status = 'pending';
CREATE INDEX idx_work_items_claim_task
    ON work_items(task_id, priority DESC, created_at, work_item_id) WHERE status = 'pending';

CREATE TABLE work_waiting (
    work_item_id  text COLLATE "C" PRIMARY KEY CHECK (octet_length(work_item_id) BETWEEN 1 AND 200),
    task_id       text COLLATE "C" NOT NULL REFERENCES tasks(task_id) ON DELETE CASCADE,
    work_type     text COLLATE "C" NOT NULL CHECK (octet_length(work_type) BETWEEN 1 AND 200),
    priority      integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000000 AND 1000000),
    retry_count   integer NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
    max_retries   integer NOT NULL DEFAULT 3 CHECK (max_retries BETWEEN 0 AND 1000000),
    attempts      bigint NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    token         bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
    entries       bigint NOT NULL DEFAULT 0 CHECK (entries >= 0),
    input_data    text,
    error_message text,
    created_at    timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    started_at    timestamptz,
    updated_at    timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    reason        text NOT NULL CHECK (reason IN ('delay', 'backoff', 'dependency')),
    due_at        timestamptz CHECK (isfinite(due_at)),
    waits_for     bigint NOT NULL DEFAULT 0 CHECK (waits_for >= 0),
    CONSTRAINT who_waits_waits_for_something CHECK (due_at IS NOT NULL OR waits_for > 0)
);
CREATE INDEX idx_work_waiting_due ON work_waiting(due_at) WHERE waits_for = 0;
CREATE INDEX idx_work_waiting_task ON work_waiting(task_id);

CREATE TABLE work_dependencies (
    work_item_id text COLLATE "C" NOT NULL,
    after_id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (work_item_id, after_id),
    CONSTRAINT no_item_waits_for_itself CHECK (work_item_id <> after_id)
);
CREATE INDEX idx_work_dependencies_after ON work_dependencies(after_id);

CREATE TABLE work_history (
    seq          bigint GENERATED ALWAYS AS IDENTITY,
    work_item_id text COLLATE "C" NOT NULL,
    task_id      text COLLATE "C" NOT NULL,
    from_status  text,
    to_status    text NOT NULL,
    token        bigint NOT NULL,
    lease_holder text,
    retry_count  integer NOT NULL,
    message      text,
    at           timestamptz NOT NULL,
    PRIMARY KEY (work_item_id, seq),
    CONSTRAINT only_transitions_that_exist CHECK (CASE coalesce(from_status, '')
        WHEN '' THEN to_status = 'pending'
        WHEN 'pending' THEN to_status IN ('in_progress', 'failed')
        WHEN 'in_progress' THEN to_status IN ('completed', 'failed', 'pending', 'expired')
        WHEN 'expired' THEN to_status IN ('pending', 'failed')
        ELSE false END)
);
CREATE TRIGGER check_work_history_append_only BEFORE UPDATE ON work_history FOR EACH ROW
    EXECUTE FUNCTION refuse('the history of work items does not change');

CREATE FUNCTION refuse_work_item() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    why text;
BEGIN
    why := CASE
        WHEN OLD.status IN ('completed', 'failed')
            THEN 'a work item that is completed or failed does not change'
        WHEN NEW.status IS NULL
             OR NEW.status NOT IN ('pending', 'in_progress', 'completed', 'failed', 'expired')
            THEN 'invalid status: pending, in_progress, completed, failed or expired'
        WHEN OLD.status = 'in_progress' AND NEW.status = 'in_progress'
             AND NEW.lease_holder IS DISTINCT FROM OLD.lease_holder
            THEN 'the lease of a work item is taken while it is pending, not from its holder'
        WHEN NEW.token < OLD.token OR NEW.attempts < OLD.attempts OR NEW.entries < OLD.entries
            THEN 'token, attempts and entries of a work item do not go down'
        WHEN NEW.work_item_id <> OLD.work_item_id OR NEW.task_id <> OLD.task_id
             OR NEW.created_at <> OLD.created_at
            THEN 'work_item_id, task_id and created_at of a work item do not change'
        ELSE format('a work item cannot go from %s to %s', OLD.status, NEW.status) END;
    RAISE EXCEPTION '%', why
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
              SCHEMA = TG_TABLE_SCHEMA;
END $$;
CREATE TRIGGER check_work_items_status BEFORE UPDATE OF
    work_type, status, priority, lease_holder, lease_acquired_at, lease_expires_at, heartbeat_at,
    retry_count, max_retries, input_data, output_data, error_message, started_at, completed_at,
    token, attempts, steps
ON work_items FOR EACH ROW
    WHEN ((CASE OLD.status
           WHEN 'pending' THEN NEW.status IN ('pending', 'in_progress', 'failed')
           WHEN 'in_progress'
               THEN NEW.status IN ('completed', 'failed', 'pending', 'expired')
                    OR (NEW.status = 'in_progress' AND NEW.lease_holder = OLD.lease_holder)
           WHEN 'expired' THEN NEW.status IN ('expired', 'pending', 'failed')
           ELSE false END) IS NOT TRUE
          OR NEW.token < OLD.token OR NEW.attempts < OLD.attempts)
    EXECUTE FUNCTION refuse_work_item();
CREATE TRIGGER check_work_items_identity BEFORE UPDATE OF
    work_item_id, task_id, created_at, entries
ON work_items FOR EACH ROW
    WHEN (OLD.status IN ('completed', 'failed') OR NEW.entries < OLD.entries
          OR NEW.work_item_id <> OLD.work_item_id OR NEW.task_id <> OLD.task_id
          OR NEW.created_at <> OLD.created_at)
    EXECUTE FUNCTION refuse_work_item();
CREATE TRIGGER check_work_items_limits BEFORE INSERT OR UPDATE OF
    work_item_id, work_type, priority, retry_count, max_retries
ON work_items FOR EACH ROW
    WHEN (octet_length(NEW.work_item_id) NOT BETWEEN 1 AND 200
          OR octet_length(NEW.work_type) NOT BETWEEN 1 AND 200
          OR NEW.priority NOT BETWEEN -1000000 AND 1000000
          OR NEW.max_retries NOT BETWEEN 0 AND 1000000 OR NEW.retry_count < 0
          OR NEW.token < 0 OR NEW.attempts < 0 OR NEW.entries < 0)
    EXECUTE FUNCTION refuse('work_item_id and work_type have 1 to 200 bytes, priority is -1000000 to 1000000, max_retries 0 to 1000000, no count is negative');

-- Foreign SQL that leases: the token that it left alone.
CREATE FUNCTION count_work_item_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.token := OLD.token + 1;
    NEW.attempts := OLD.attempts + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER count_work_items_lease BEFORE UPDATE OF status ON work_items FOR EACH ROW
    WHEN (NEW.status = 'in_progress' AND OLD.status = 'pending' AND NEW.token = OLD.token)
    EXECUTE FUNCTION count_work_item_lease();
CREATE TRIGGER update_work_items_timestamp BEFORE UPDATE ON work_items FOR EACH ROW
    WHEN (NEW.updated_at = OLD.updated_at AND NEW.has_followers = OLD.has_followers)
    EXECUTE FUNCTION set_updated_at();

CREATE TRIGGER check_work_items_insert BEFORE INSERT ON work_items FOR EACH ROW
    WHEN (NEW.status IS DISTINCT FROM 'pending')
    EXECUTE FUNCTION refuse('a work item begins as pending');
CREATE TRIGGER check_work_waiting_update BEFORE UPDATE OF
    work_item_id, task_id, created_at, token, attempts, entries
ON work_waiting FOR EACH ROW
    WHEN (NEW.work_item_id <> OLD.work_item_id OR NEW.task_id <> OLD.task_id
          OR NEW.created_at <> OLD.created_at OR NEW.token < OLD.token
          OR NEW.attempts < OLD.attempts OR NEW.entries < OLD.entries)
    EXECUTE FUNCTION refuse('ids and created_at of a work item do not change, token, attempts and entries do not go down');

CREATE FUNCTION record_work_items_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM new_rows JOIN work_waiting USING (work_item_id)) THEN
        RAISE EXCEPTION 'a work item of this work_item_id is in work_waiting'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                  SCHEMA = TG_TABLE_SCHEMA;
    END IF;
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, retry_count, at)
    SELECT work_item_id, task_id, NULL, status, token, retry_count, created_at
    FROM new_rows WHERE entries = 0;
    RETURN NULL;
END $$;
CREATE TRIGGER record_work_items_insert AFTER INSERT ON work_items
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION record_work_items_insert();

CREATE FUNCTION record_work_waiting_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM new_rows JOIN work_items USING (work_item_id)) THEN
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
CREATE TRIGGER record_work_waiting_insert AFTER INSERT ON work_waiting
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION record_work_waiting_insert();

CREATE FUNCTION record_work_items_update() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, lease_holder,
                              retry_count, message, at)
    VALUES (NEW.work_item_id, NEW.task_id, OLD.status, NEW.status, NEW.token,
            coalesce(NEW.lease_holder, OLD.lease_holder), NEW.retry_count,
            CASE WHEN NEW.status IN ('in_progress', 'completed') THEN NULL
                 ELSE NEW.error_message END,
            NEW.updated_at);
    RETURN NULL;
END $$;
CREATE TRIGGER record_work_items_update AFTER UPDATE ON work_items FOR EACH ROW
    WHEN (NEW.status <> OLD.status AND NEW.steps = OLD.steps)
    EXECUTE FUNCTION record_work_items_update();

-- Who completes an item that somebody waits for has more to do, and sees it in the item's own row:
-- the update waits for whoever adds an edge, and then looks at the row again.
CREATE FUNCTION note_work_items_followers() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE work_items SET has_followers = true
    WHERE work_item_id IN (SELECT after_id FROM new_rows)
      AND NOT has_followers AND status NOT IN ('completed', 'failed');
    RETURN NULL;
END $$;
CREATE TRIGGER note_work_items_followers AFTER INSERT ON work_dependencies
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION note_work_items_followers();

-- Edges go with an item that has ended; one that moves between the two tables is pending.
CREATE FUNCTION remove_work_items_edges() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM work_dependencies d USING old_rows o
    WHERE d.work_item_id = o.work_item_id AND o.status IN ('completed', 'failed');
    DELETE FROM work_dependencies d USING old_rows o
    WHERE d.after_id = o.work_item_id AND o.status IN ('completed', 'failed');
    RETURN NULL;
END $$;
CREATE TRIGGER remove_work_items_edges AFTER DELETE ON work_items
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT
    EXECUTE FUNCTION remove_work_items_edges();
CREATE FUNCTION remove_tasks_edges() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM work_dependencies WHERE work_item_id IN
        (SELECT work_item_id FROM work_items WHERE task_id = OLD.task_id
         UNION ALL SELECT work_item_id FROM work_waiting WHERE task_id = OLD.task_id);
    RETURN OLD;
END $$;
CREATE TRIGGER remove_tasks_edges BEFORE DELETE ON tasks FOR EACH ROW
    EXECUTE FUNCTION remove_tasks_edges();

CREATE TABLE checkpoint_counters (
    task_id text COLLATE "C" PRIMARY KEY REFERENCES tasks(task_id) ON DELETE CASCADE,
    last    bigint NOT NULL CHECK (last >= 0)
) WITH (fillfactor = 10); -- room for the next versions of its few rows
CREATE TRIGGER check_checkpoint_counters_update BEFORE UPDATE ON checkpoint_counters FOR EACH ROW
    WHEN (NEW.last < OLD.last OR NEW.task_id <> OLD.task_id)
    EXECUTE FUNCTION refuse('the counter of a task''s checkpoints does not go down');
CREATE FUNCTION keep_checkpoint_counter() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM tasks WHERE task_id = OLD.task_id) THEN
        RAISE EXCEPTION 'the counter of a task''s checkpoints goes with the task'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                  SCHEMA = TG_TABLE_SCHEMA;
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER check_checkpoint_counters_delete BEFORE DELETE ON checkpoint_counters FOR EACH ROW
    EXECUTE FUNCTION keep_checkpoint_counter();

CREATE TABLE checkpoints (
    checkpoint_id   text COLLATE "C" NOT NULL CHECK (octet_length(checkpoint_id) BETWEEN 1 AND 200),
    task_id         text COLLATE "C" NOT NULL REFERENCES tasks(task_id) ON DELETE CASCADE,
    work_item_id    text COLLATE "C" REFERENCES work_items(work_item_id) ON DELETE SET NULL,
    checkpoint_type text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    snapshot_data   text NOT NULL,
    metadata        text,
    created_at      timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    -- ours
    item_id         text COLLATE "C", -- work_item_id as it was given; stays when the item goes
    verified        boolean NOT NULL DEFAULT true,
    PRIMARY KEY (task_id, checkpoint_id),
    CONSTRAINT one_item CHECK (work_item_id IS NULL OR item_id IS NULL OR work_item_id = item_id)
) PARTITION BY HASH (task_id);
CREATE TABLE checkpoints_0 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE checkpoints_1 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE checkpoints_2 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE checkpoints_3 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE checkpoints_4 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE checkpoints_5 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE checkpoints_6 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE checkpoints_7 PARTITION OF checkpoints FOR VALUES WITH (MODULUS 8, REMAINDER 7);
CREATE UNIQUE INDEX idx_checkpoints_task_sequence ON checkpoints(task_id, sequence_number ASC);
CREATE INDEX idx_checkpoints_work_item ON checkpoints(work_item_id, sequence_number ASC)
    WHERE work_item_id IS NOT NULL;
CREATE INDEX idx_checkpoints_type ON checkpoints(checkpoint_type, created_at DESC);
CREATE INDEX idx_checkpoints_created_at ON checkpoints(created_at DESC);
CREATE INDEX idx_checkpoints_item ON checkpoints(item_id) WHERE item_id IS NOT NULL;
-- Ours: a checkpoint by its id alone.
CREATE INDEX idx_checkpoints_id ON checkpoints(checkpoint_id);
CREATE INDEX idx_checkpoints_task_type ON checkpoints(task_id, checkpoint_type, sequence_number);

CREATE TRIGGER check_checkpoints_type BEFORE INSERT ON checkpoints FOR EACH ROW
    WHEN ((NEW.checkpoint_type IN
           ('iteration_start', 'iteration_end', 'tool_executed', 'llm_response', 'approval_point',
            'state_transition', 'manual_checkpoint', 'error_boundary')) IS NOT TRUE)
    EXECUTE FUNCTION refuse('invalid checkpoint_type: iteration_start, iteration_end, tool_executed, llm_response, approval_point, state_transition, manual_checkpoint or error_boundary');
-- The counter's row is locked until the end of the transaction: writers of one task take turns.
CREATE FUNCTION number_checkpoint() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.sequence_number IS NULL THEN
        INSERT INTO checkpoint_counters AS c (task_id, last) VALUES (NEW.task_id, 1)
        ON CONFLICT (task_id) DO UPDATE SET last = c.last + 1
        RETURNING last INTO NEW.sequence_number;
    ELSIF NEW.sequence_number < 1 THEN
        RAISE EXCEPTION 'sequence_number must be above every one that the task has had'
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                  SCHEMA = TG_TABLE_SCHEMA;
    ELSE
        INSERT INTO checkpoint_counters AS c (task_id, last)
        VALUES (NEW.task_id, NEW.sequence_number)
        ON CONFLICT (task_id) DO UPDATE SET last = EXCLUDED.last WHERE c.last < EXCLUDED.last;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'sequence_number must be above every one that the task has had'
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                      SCHEMA = TG_TABLE_SCHEMA;
        END IF;
    END IF;
    IF NEW.work_item_id IS NOT NULL THEN
        NEW.item_id := coalesce(NEW.item_id, NEW.work_item_id);
        IF EXISTS (SELECT 1 FROM work_items
                   WHERE work_item_id = NEW.work_item_id AND task_id <> NEW.task_id) THEN
            RAISE EXCEPTION 'the work item of a checkpoint is one of the same task'
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME,
                      SCHEMA = TG_TABLE_SCHEMA;
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER count_checkpoints_insert BEFORE INSERT ON checkpoints FOR EACH ROW
    EXECUTE FUNCTION number_checkpoint();
CREATE TRIGGER check_checkpoints_immutable BEFORE UPDATE OF
    checkpoint_id, task_id, checkpoint_type, sequence_number, snapshot_data, metadata, created_at
ON checkpoints FOR EACH ROW
    EXECUTE FUNCTION refuse('a checkpoint does not change');
CREATE TRIGGER check_checkpoints_link BEFORE UPDATE OF work_item_id, item_id ON checkpoints
FOR EACH ROW
    WHEN (NEW.item_id IS DISTINCT FROM OLD.item_id
          OR (NEW.work_item_id IS NOT NULL AND NEW.work_item_id IS DISTINCT FROM NEW.item_id))
    EXECUTE FUNCTION refuse('a checkpoint stays with its work item');

CREATE TABLE checkpoint_evidence (
    task_id       text COLLATE "C" NOT NULL,
    checkpoint_id text COLLATE "C" NOT NULL,
    ordinal       integer NOT NULL CHECK (ordinal >= 0),
    kind          text NOT NULL
                  CHECK (kind IN ('file_exists', 'file_sha256', 'command_exit', 'row_exists')),
    subject       text NOT NULL,
    expected      text,
    PRIMARY KEY (task_id, checkpoint_id, ordinal),
    FOREIGN KEY (task_id, checkpoint_id) REFERENCES checkpoints(task_id, checkpoint_id)
        ON DELETE CASCADE
);
CREATE TRIGGER check_checkpoint_evidence_immutable BEFORE UPDATE ON checkpoint_evidence FOR EACH ROW
    EXECUTE FUNCTION refuse('the evidence of a checkpoint does not change');

CREATE TABLE checkpoint_results (
    seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id       text COLLATE "C" NOT NULL,
    checkpoint_id text COLLATE "C" NOT NULL,
    ordinal       integer NOT NULL CHECK (ordinal >= 0),
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    ok            boolean NOT NULL,
    detail        text,
    FOREIGN KEY (task_id, checkpoint_id) REFERENCES checkpoints(task_id, checkpoint_id)
        ON DELETE CASCADE
);
CREATE INDEX idx_checkpoint_results_checkpoint
    ON checkpoint_results(task_id, checkpoint_id, ordinal);
CREATE TRIGGER check_checkpoint_results_append_only BEFORE UPDATE ON checkpoint_results FOR EACH ROW
    EXECUTE FUNCTION refuse('the results of looking at evidence do not change');

CREATE TABLE checkpoints_archive (
    checkpoint_id   text COLLATE "C" NOT NULL,
    task_id         text COLLATE "C" NOT NULL,
    work_item_id    text COLLATE "C",
    checkpoint_type text COLLATE "C" NOT NULL,
    sequence_number bigint NOT NULL,
    snapshot_data   text NOT NULL,
    metadata        text,
    created_at      timestamptz NOT NULL,
    item_id         text COLLATE "C",
    verified        boolean NOT NULL,
    archived_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (task_id, checkpoint_id)
);
CREATE TRIGGER check_checkpoints_archive_immutable BEFORE UPDATE ON checkpoints_archive FOR EACH ROW
    EXECUTE FUNCTION refuse('an archived checkpoint does not change');

CREATE TABLE idempotency_keys (
    idempotency_key  text COLLATE "C" PRIMARY KEY
                     CHECK (octet_length(idempotency_key) BETWEEN 1 AND 200),
    task_id          text COLLATE "C" REFERENCES tasks(task_id) ON DELETE SET NULL,
    work_item_id     text COLLATE "C" REFERENCES work_items(work_item_id) ON DELETE SET NULL,
    request_hash     text NOT NULL,
    response_data    text,
    status           text COLLATE "C" NOT NULL DEFAULT 'pending'
                     CHECK (status IN ('pending', 'completed', 'failed')),
    created_at       timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    completed_at     timestamptz,
    expires_at       timestamptz CHECK (isfinite(expires_at)),
    -- ours
    item_id          text COLLATE "C", -- work_item_id as it was given; stays when the item goes
    owner_token      bigint NOT NULL DEFAULT 0 CHECK (owner_token >= 0), -- +1 whenever it is taken
    owner            text,
    lease_expires_at timestamptz CHECK (isfinite(lease_expires_at)), -- NULL: no lease
    CONSTRAINT only_an_ended_key_has_an_end CHECK ((status = 'pending') = (completed_at IS NULL)),
    CONSTRAINT only_an_ended_key_has_a_response
        CHECK (status <> 'pending' OR response_data IS NULL),
    CONSTRAINT one_item CHECK (work_item_id IS NULL OR item_id IS NULL OR work_item_id = item_id)
);
CREATE INDEX idx_idempotency_keys_task ON idempotency_keys(task_id, created_at DESC)
    WHERE task_id IS NOT NULL;
CREATE INDEX idx_idempotency_keys_work_item ON idempotency_keys(work_item_id, created_at DESC)
    WHERE work_item_id IS NOT NULL;
CREATE INDEX idx_idempotency_keys_expires_at ON idempotency_keys(expires_at)
    WHERE expires_at IS NOT NULL;
CREATE INDEX idx_idempotency_keys_status ON idempotency_keys(status, created_at DESC);
CREATE INDEX idx_idempotency_keys_item ON idempotency_keys(item_id) WHERE item_id IS NOT NULL;

-- pending -> completed or failed, and there it stays. A key that can expire may be taken anew once
-- it has: back to pending with a higher owner_token.
CREATE TRIGGER check_idempotency_keys_status BEFORE UPDATE OF
    idempotency_key, request_hash, response_data, status, created_at, completed_at, expires_at,
    owner_token, owner, lease_expires_at
ON idempotency_keys FOR EACH ROW
    WHEN ((CASE OLD.status
           WHEN 'pending'
               THEN NEW.status IN ('completed', 'failed', 'pending')
                    AND (NEW.owner_token > OLD.owner_token
                         OR (NEW.request_hash = OLD.request_hash
                             AND NEW.created_at = OLD.created_at))
           ELSE NEW.status = 'pending' AND NEW.owner_token > OLD.owner_token
                AND OLD.expires_at IS NOT NULL
           END) IS NOT TRUE
          OR NEW.idempotency_key <> OLD.idempotency_key OR NEW.owner_token < OLD.owner_token)
    EXECUTE FUNCTION refuse('an idempotency key that is completed or failed does not change, a pending one keeps its hash and goes to completed or failed');
CREATE TRIGGER check_idempotency_keys_insert BEFORE INSERT ON idempotency_keys FOR EACH ROW
    WHEN (NEW.status IS DISTINCT FROM 'pending')
    EXECUTE FUNCTION refuse('an idempotency key begins as pending');
CREATE TRIGGER check_idempotency_keys_link BEFORE UPDATE OF work_item_id, item_id
ON idempotency_keys FOR EACH ROW
    WHEN (NEW.owner_token = OLD.owner_token
          AND (NEW.item_id IS DISTINCT FROM OLD.item_id
               OR (NEW.work_item_id IS NOT NULL
                   AND NEW.work_item_id IS DISTINCT FROM NEW.item_id)))
    EXECUTE FUNCTION refuse('an idempotency key stays with its work item');
CREATE FUNCTION keep_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.item_id := NEW.work_item_id;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_idempotency_keys_item BEFORE INSERT ON idempotency_keys FOR EACH ROW
    WHEN (NEW.item_id IS NULL AND NEW.work_item_id IS NOT NULL)
    EXECUTE FUNCTION keep_item();

CREATE TABLE schedules (
    schedule_id text COLLATE "C" PRIMARY KEY CHECK (octet_length(schedule_id) BETWEEN 1 AND 200),
    cron        text NOT NULL,
    timezone    text NOT NULL DEFAULT 'UTC' CHECK (timezone = 'UTC'),
    work_type   text COLLATE "C" NOT NULL CHECK (octet_length(work_type) BETWEEN 1 AND 200),
    task_id     text COLLATE "C" REFERENCES tasks(task_id) ON DELETE CASCADE, -- NULL: a task of
                -- its own a slot
    priority    integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000000 AND 1000000),
    input_data  text,
    max_retries integer NOT NULL DEFAULT 3 CHECK (max_retries BETWEEN 0 AND 1000000),
    enabled     boolean NOT NULL DEFAULT true,
    next_slot   timestamptz CHECK (isfinite(next_slot)),
    created_at  timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at  timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX idx_schedules_next ON schedules(next_slot) WHERE enabled;
CREATE INDEX idx_schedules_task ON schedules(task_id) WHERE task_id IS NOT NULL;

CREATE TABLE schedule_fires (
    schedule_id  text COLLATE "C" NOT NULL REFERENCES schedules(schedule_id) ON DELETE CASCADE,
    slot         timestamptz NOT NULL CHECK (isfinite(slot)),
    work_item_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (schedule_id, slot)
);
CREATE TRIGGER check_schedule_fires_append_only BEFORE UPDATE ON schedule_fires FOR EACH ROW
    EXECUTE FUNCTION refuse('a slot that has fired does not change');
