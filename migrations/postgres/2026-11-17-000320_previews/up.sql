-- Previews of pull and merge requests.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

-- The preview settings of applications that have any.
CREATE TABLE preview_settings (
    application_id UUID NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    most_at_once BIGINT NOT NULL,
    lifetime_hours BIGINT NOT NULL,
    -- The names of variables, as a JSON array.
    shared_variables TEXT NOT NULL,
    runs_commands BOOLEAN NOT NULL,
    -- Sealed.
    build_variables TEXT NOT NULL,
    environment_variables TEXT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT preview_settings_pkey PRIMARY KEY (application_id),
    CONSTRAINT preview_settings_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);

CREATE TABLE previews (
    parent_id UUID NOT NULL,
    -- Of the request, in its repository.
    number BIGINT NOT NULL,
    code_host TEXT NOT NULL,
    -- The application that runs the preview.
    application_id UUID,
    state TEXT NOT NULL,
    branch TEXT NOT NULL,
    head_commit TEXT,
    is_from_fork BOOLEAN NOT NULL,
    approved_commit TEXT,
    expires_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT previews_pkey PRIMARY KEY (parent_id, number),
    CONSTRAINT previews_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES applications (id),
    CONSTRAINT previews_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);

CREATE UNIQUE INDEX previews_application_idx ON previews (application_id);
CREATE INDEX previews_expires_at_idx ON previews (expires_at);
