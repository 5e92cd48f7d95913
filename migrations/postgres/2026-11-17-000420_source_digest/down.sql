ALTER TABLE deployments DROP COLUMN source_digest;
