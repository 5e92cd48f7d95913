-- Live versions are looked for every other second, and most applications may have none.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

CREATE INDEX applications_live_idx ON applications (id)
    WHERE live_deployment_id IS NOT NULL AND deleted_at IS NULL;
