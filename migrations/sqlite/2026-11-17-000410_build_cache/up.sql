-- Deployments that are built without the cache.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

ALTER TABLE deployments ADD COLUMN no_cache INTEGER NOT NULL DEFAULT 0;
