-- The digests of uploads.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

ALTER TABLE deployments ADD COLUMN source_digest TEXT;
