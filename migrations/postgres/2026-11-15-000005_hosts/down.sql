ALTER TABLE deployments DROP CONSTRAINT deployments_container_is_whole;
ALTER TABLE deployments ADD CONSTRAINT deployments_container_is_whole CHECK (
    (container_id IS NULL) = (container_name IS NULL)
    AND (container_id IS NULL) = (container_state IS NULL)
    AND (container_id IS NOT NULL OR container_address IS NULL)
);
ALTER TABLE deployments DROP COLUMN container_port;
CREATE UNIQUE INDEX applications_domain_key
    ON applications (domain) WHERE deleted_at IS NULL AND domain IS NOT NULL;
DROP TABLE hosts;
ALTER TABLE applications DROP COLUMN further_domains;
ALTER TABLE applications DROP COLUMN automatic_host;
