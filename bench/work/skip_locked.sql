UPDATE job SET status = 'in_progress', started_at = clock_timestamp() WHERE id = (SELECT id FROM job WHERE status = 'pending' ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id \gset
UPDATE job SET status = 'completed', completed_at = clock_timestamp() WHERE id = :id;
