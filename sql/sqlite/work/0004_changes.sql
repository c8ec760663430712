-- version: 0.32.0
-- The history as a feed of changes: a reader resumes after the last seq that it saw.
--
-- * changes_floor: the highest seq that was ever removed. A reader whose position is below it has missed changes, and
--   is told so.
-- * SQLite gives a new row the highest seq plus one. When the newest row is removed, a row of no item keeps its place,
--   so that no seq comes twice. Only the latest such row is needed.
ALTER TABLE work_counters ADD COLUMN changes_floor INTEGER NOT NULL DEFAULT 0
    CHECK (typeof(changes_floor) = 'integer' AND changes_floor >= 0);
CREATE TRIGGER raise_work_changes_floor AFTER DELETE ON work_history
WHEN OLD.seq > (SELECT changes_floor FROM work_counters) AND OLD.work_item_id <> ''
BEGIN
    UPDATE work_counters SET changes_floor = OLD.seq;
END;
CREATE TRIGGER keep_work_history_seq AFTER DELETE ON work_history
WHEN OLD.work_item_id <> '' AND OLD.seq > (SELECT coalesce(max(seq), 0) FROM work_history)
BEGIN
    DELETE FROM work_history WHERE work_item_id = '';
    INSERT INTO work_history (seq, work_item_id, task_id, to_status, token, retry_count, at)
    VALUES (OLD.seq, '', '', 'pending', 0, 0, OLD.at);
END;
