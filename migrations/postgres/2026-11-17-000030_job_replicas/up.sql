-- The server that a job is bound to, because its files are there.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.
ALTER TABLE jobs ADD COLUMN runs_on UUID;
UPDATE jobs SET runs_on = lease_instance WHERE kind = 'run_extension' AND state = 'running';
