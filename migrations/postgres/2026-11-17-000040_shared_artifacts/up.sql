-- The artifacts that every server of an installation needs, and not only the one that made them.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

-- The token with which the first administrator registers from another machine. One row at most: the first server
-- writes it, and the registration deletes it.
CREATE TABLE setup_token (
    singleton INTEGER NOT NULL,
    sealed TEXT NOT NULL,
    CONSTRAINT setup_token_pkey PRIMARY KEY (singleton),
    CONSTRAINT setup_token_is_one CHECK (singleton = 1)
);

-- The files and images of deployed compositions, sealed with the key.
CREATE TABLE compositions (
    application_id UUID NOT NULL,
    deployment_id UUID NOT NULL,
    sealed TEXT NOT NULL,
    CONSTRAINT compositions_pkey PRIMARY KEY (application_id, deployment_id),
    CONSTRAINT compositions_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id),
    CONSTRAINT compositions_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES deployments (id)
);

-- The archives of published sites, from which every server unpacks them. Only used on PostgreSQL: on SQLite there is one
-- server, which has the files. A row exists once the archive is complete, and stays when it is removed.
CREATE TABLE site_archives (
    deployment_id UUID NOT NULL,
    application_id UUID NOT NULL,
    upload_id UUID NOT NULL,
    parts BIGINT NOT NULL,
    size BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    is_removed BOOLEAN NOT NULL,
    CONSTRAINT site_archives_pkey PRIMARY KEY (deployment_id),
    CONSTRAINT site_archives_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES deployments (id),
    CONSTRAINT site_archives_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);
CREATE INDEX site_archives_application_id_idx ON site_archives (application_id);

-- Each upload has its own parts, so that two servers may archive the same release. Those of no archive are removed later.
CREATE TABLE site_archive_parts (
    upload_id UUID NOT NULL,
    part BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    written_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT site_archive_parts_pkey PRIMARY KEY (upload_id, part)
);
-- They are compressed already.
ALTER TABLE site_archive_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
