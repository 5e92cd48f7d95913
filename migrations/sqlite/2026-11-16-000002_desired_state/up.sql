-- The reason why a live version does not serve.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.
ALTER TABLE deployments ADD COLUMN breakdown TEXT;

-- The workers that a job waits for.
ALTER TABLE jobs ADD COLUMN pool TEXT NOT NULL DEFAULT 'builds';
UPDATE jobs SET pool = 'operations' WHERE kind IN ('restart', 'stop', 'remove');
UPDATE jobs SET pool = 'extensions' WHERE kind IN ('run_extension', 'uninstall_extension');
UPDATE jobs SET pool = 'sites'
    WHERE kind IN ('deploy', 'restart', 'stop')
    AND subject IN (SELECT id FROM applications WHERE build_pack = 'static');
