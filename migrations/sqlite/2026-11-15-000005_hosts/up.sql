-- The names that lead to applications, and the port that a container listens on.
-- Ids are 16 bytes.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- Each has a default, because SQLite adds no column without one and takes none away later.
-- The name that Launchway gave it.
ALTER TABLE applications ADD COLUMN automatic_host TEXT NOT NULL DEFAULT '';
-- A JSON array of texts.
ALTER TABLE applications ADD COLUMN further_domains TEXT NOT NULL DEFAULT '[]';
-- Those that are there already get a name that needs no rule.
UPDATE applications SET automatic_host = 'app-' || lower(hex(id)) || '.organization.localhost';

-- Every name of every application that is not deleted leads to one alone.
CREATE TABLE hosts (
    host TEXT NOT NULL,
    application_id BLOB NOT NULL,
    CONSTRAINT hosts_pkey PRIMARY KEY (host),
    CONSTRAINT hosts_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX hosts_application_id_idx ON hosts (application_id);
INSERT INTO hosts (host, application_id)
    SELECT domain, id FROM applications WHERE deleted_at IS NULL AND domain IS NOT NULL;
INSERT INTO hosts (host, application_id)
    SELECT automatic_host, id FROM applications WHERE deleted_at IS NULL;
DROP INDEX applications_domain_key;

-- There if there is a container. Unlike PostgreSQL, SQLite adds that to no check that it has.
ALTER TABLE deployments ADD COLUMN container_port INTEGER;
UPDATE deployments
    SET container_port = (SELECT port FROM applications WHERE applications.id = deployments.application_id)
    WHERE container_id IS NOT NULL;
