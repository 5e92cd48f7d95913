-- The names that lead to applications, and the port that a container listens on.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

-- The name that Launchway gave it.
ALTER TABLE applications ADD COLUMN automatic_host TEXT NOT NULL DEFAULT '';
-- A JSON array of texts.
ALTER TABLE applications ADD COLUMN further_domains TEXT NOT NULL DEFAULT '[]';
ALTER TABLE applications ALTER COLUMN automatic_host DROP DEFAULT, ALTER COLUMN further_domains DROP DEFAULT;
-- Those that are there already get a name that needs no rule.
UPDATE applications SET automatic_host = 'app-' || replace(id::text, '-', '') || '.organization.localhost';

-- Every name of every application that is not deleted leads to one alone.
CREATE TABLE hosts (
    host TEXT NOT NULL,
    application_id UUID NOT NULL,
    CONSTRAINT hosts_pkey PRIMARY KEY (host),
    CONSTRAINT hosts_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);
CREATE INDEX hosts_application_id_idx ON hosts (application_id);
INSERT INTO hosts (host, application_id)
    SELECT domain, id FROM applications WHERE deleted_at IS NULL AND domain IS NOT NULL;
INSERT INTO hosts (host, application_id)
    SELECT automatic_host, id FROM applications WHERE deleted_at IS NULL;
DROP INDEX applications_domain_key;

-- There if there is a container.
ALTER TABLE deployments ADD COLUMN container_port BIGINT;
UPDATE deployments
    SET container_port = (SELECT port FROM applications WHERE applications.id = deployments.application_id)
    WHERE container_id IS NOT NULL;
ALTER TABLE deployments DROP CONSTRAINT deployments_container_is_whole;
ALTER TABLE deployments ADD CONSTRAINT deployments_container_is_whole CHECK (
    (container_id IS NULL) = (container_name IS NULL)
    AND (container_id IS NULL) = (container_state IS NULL)
    AND (container_id IS NULL) = (container_port IS NULL)
    AND (container_id IS NOT NULL OR container_address IS NULL)
);
