CREATE TABLE job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'pending',
    priority integer NOT NULL DEFAULT 0,
    input jsonb NOT NULL DEFAULT '{}',
    started_at timestamptz,
    completed_at timestamptz
);
CREATE INDEX job_pending ON job (priority DESC, id) WHERE status = 'pending';
