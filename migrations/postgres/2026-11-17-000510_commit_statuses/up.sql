-- Commit statuses of previews.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

-- The tokens with which organizations report to code hosts.
CREATE TABLE code_host_tokens (
    organization_id UUID NOT NULL,
    host TEXT NOT NULL,
    -- The address of the API, if it is not the default.
    api_url TEXT,
    -- Sealed.
    token TEXT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    -- Why the last report failed.
    problem TEXT,
    CONSTRAINT code_host_tokens_pkey PRIMARY KEY (organization_id, host),
    CONSTRAINT code_host_tokens_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

-- The status that was reported last.
ALTER TABLE previews ADD COLUMN reported_commit TEXT;
ALTER TABLE previews ADD COLUMN reported_state TEXT;
