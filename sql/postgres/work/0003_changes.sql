-- version: 0.32.0
-- The history as a feed of changes: see sql/sqlite/work/0004_changes.sql.
-- Different here: transactions run side by side, so a row with a lower seq may become visible after one with a
-- higher seq. The feed is in the order of (tx, seq), and a reader stops before the oldest transaction that is still
-- open: all rows before it are final, and every later one has a higher tx.
ALTER TABLE work_history ADD COLUMN tx bigint NOT NULL DEFAULT 0; -- 0: from before there was a feed
ALTER TABLE work_history ALTER COLUMN tx SET DEFAULT txid_current();
CREATE INDEX idx_work_history_changes ON work_history(tx, seq);
ALTER TABLE work_counters ADD COLUMN changes_floor_tx bigint NOT NULL DEFAULT 0;
ALTER TABLE work_counters ADD COLUMN changes_floor_seq bigint NOT NULL DEFAULT 0;
CREATE FUNCTION raise_work_changes_floor() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE work_counters SET changes_floor_tx = o.tx, changes_floor_seq = o.seq
    FROM (SELECT tx, seq FROM old_rows ORDER BY tx DESC, seq DESC LIMIT 1) AS o
    WHERE (changes_floor_tx, changes_floor_seq) < (o.tx, o.seq);
    RETURN NULL;
END $$;
CREATE TRIGGER raise_work_changes_floor AFTER DELETE ON work_history
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT
    EXECUTE FUNCTION raise_work_changes_floor();
