-- Deployments that are built without the cache.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

ALTER TABLE deployments ADD COLUMN no_cache BOOLEAN NOT NULL DEFAULT FALSE;
