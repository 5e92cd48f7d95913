ALTER TABLE deployments DROP COLUMN container_port;
CREATE UNIQUE INDEX applications_domain_key
    ON applications (domain) WHERE deleted_at IS NULL AND domain IS NOT NULL;
DROP TABLE hosts;
ALTER TABLE applications DROP COLUMN further_domains;
ALTER TABLE applications DROP COLUMN automatic_host;
