-- Previews of pull and merge requests.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- The preview settings of applications that have any.
CREATE TABLE preview_settings (
    application_id BLOB NOT NULL,
    is_enabled INTEGER NOT NULL,
    most_at_once INTEGER NOT NULL,
    lifetime_hours INTEGER NOT NULL,
    -- The names of variables, as a JSON array.
    shared_variables TEXT NOT NULL,
    runs_commands INTEGER NOT NULL,
    -- Sealed.
    build_variables TEXT NOT NULL,
    environment_variables TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    CONSTRAINT preview_settings_pkey PRIMARY KEY (application_id),
    CONSTRAINT preview_settings_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT;

CREATE TABLE previews (
    parent_id BLOB NOT NULL,
    -- Of the request, in its repository.
    number INTEGER NOT NULL,
    code_host TEXT NOT NULL,
    -- The application that runs the preview.
    application_id BLOB,
    state TEXT NOT NULL,
    branch TEXT NOT NULL,
    head_commit TEXT,
    is_from_fork INTEGER NOT NULL,
    approved_commit TEXT,
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CONSTRAINT previews_pkey PRIMARY KEY (parent_id, number),
    CONSTRAINT previews_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES applications (id),
    CONSTRAINT previews_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT;

CREATE UNIQUE INDEX previews_application_idx ON previews (application_id);
CREATE INDEX previews_expires_at_idx ON previews (expires_at);
