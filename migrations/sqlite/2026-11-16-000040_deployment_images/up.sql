-- The images that deployments have on the engine, and the bytes that each takes.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

CREATE TABLE deployment_images (
    deployment_id BLOB NOT NULL,
    image_id TEXT NOT NULL,
    organization_id BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    CONSTRAINT deployment_images_pkey PRIMARY KEY (deployment_id, image_id),
    CONSTRAINT deployment_images_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES deployments (id),
    CONSTRAINT deployment_images_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deployment_images_organization_id_idx ON deployment_images (organization_id);
