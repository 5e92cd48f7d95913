ALTER TABLE deployments DROP COLUMN no_cache;
