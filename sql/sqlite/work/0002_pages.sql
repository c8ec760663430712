-- version: 0.30.1
-- The items of a task in order of their ids, for pages of a long list. It ends in work_item_id by
-- itself, and no change of an item touches it: only what comes and goes pays.
CREATE INDEX idx_work_items_task_ids ON work_items(task_id);
