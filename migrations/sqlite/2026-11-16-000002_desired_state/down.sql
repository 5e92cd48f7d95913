ALTER TABLE jobs DROP COLUMN pool;
ALTER TABLE deployments DROP COLUMN breakdown;
