-- What code hosts sign their webhooks with, and what they sent.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

CREATE TABLE webhook_secrets (
    id UUID NOT NULL,
    organization_id UUID NOT NULL,
    -- What all addresses of the repository have in common.
    repository TEXT NOT NULL,
    -- Sealed.
    secret TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    -- Absent for the one that the code host is to be told.
    valid_until TIMESTAMPTZ,
    -- When a push of the repository was first verified, by whichever secret.
    confirmed_at TIMESTAMPTZ,
    CONSTRAINT webhook_secrets_pkey PRIMARY KEY (id),
    CONSTRAINT webhook_secrets_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE UNIQUE INDEX webhook_secrets_organization_id_repository_key
    ON webhook_secrets (organization_id, repository) WHERE valid_until IS NULL;
CREATE INDEX webhook_secrets_repository_idx ON webhook_secrets (repository);
CREATE INDEX webhook_secrets_valid_until_idx ON webhook_secrets (valid_until) WHERE valid_until IS NOT NULL;

-- Deliveries that led to a deployment, for each application that they led to one of.
CREATE TABLE webhook_deliveries (
    application_id UUID NOT NULL,
    body_hash BYTEA NOT NULL,
    -- What the code host calls it, if it does.
    delivery_id TEXT,
    taken_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (application_id, body_hash),
    CONSTRAINT webhook_deliveries_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);
CREATE UNIQUE INDEX webhook_deliveries_application_id_delivery_id_key
    ON webhook_deliveries (application_id, delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX webhook_deliveries_taken_at_idx ON webhook_deliveries (taken_at);

-- The last commit of each application that asked not to be deployed.
CREATE TABLE webhook_skips (
    application_id UUID NOT NULL,
    commit_hash TEXT NOT NULL,
    skipped_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT webhook_skips_pkey PRIMARY KEY (application_id),
    CONSTRAINT webhook_skips_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);

-- When applications were stopped, for who compares their branches.
CREATE INDEX jobs_stops_idx ON jobs (subject, enqueued_at) WHERE kind = 'stop';
