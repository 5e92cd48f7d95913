-- What people are told of, by which ways, and what became of it.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

-- Who or what asked for a deployment; empty for those from before it was kept.
ALTER TABLE deployments ADD COLUMN requested_by TEXT NOT NULL DEFAULT '';

-- Whether a device was seen before, and which sessions are to be forgotten: both are kept for a while.
CREATE INDEX sessions_device_idx ON sessions (user_id, address, user_agent, extended_at);
CREATE INDEX sessions_user_id_expires_at_idx ON sessions (user_id, expires_at);
CREATE INDEX sessions_user_id_ended_at_idx ON sessions (user_id, ended_at) WHERE ended_at IS NOT NULL;

-- Where messages go by HTTP. What is deleted is gone.
CREATE TABLE webhook_configs (
    id UUID NOT NULL,
    user_id UUID NOT NULL,
    organization_id UUID NOT NULL,
    kind TEXT NOT NULL,
    -- Sealed.
    webhook_url TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT webhook_configs_pkey PRIMARY KEY (id),
    CONSTRAINT webhook_configs_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT webhook_configs_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT webhook_configs_kind_is_known CHECK (kind IN ('slack', 'discord', 'generic'))
);
CREATE UNIQUE INDEX webhook_configs_organization_id_kind_key ON webhook_configs (organization_id, kind);

-- What signs messages. A secret goes with the place that its messages went to.
CREATE TABLE signing_secrets (
    id UUID NOT NULL,
    config_id UUID NOT NULL,
    -- Sealed.
    secret TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    -- Absent for the newest one.
    valid_until TIMESTAMPTZ,
    CONSTRAINT signing_secrets_pkey PRIMARY KEY (id),
    CONSTRAINT signing_secrets_config_id_fkey FOREIGN KEY (config_id) REFERENCES webhook_configs (id)
        ON DELETE CASCADE
);
CREATE INDEX signing_secrets_config_id_created_at_idx ON signing_secrets (config_id, created_at, id);
CREATE UNIQUE INDEX signing_secrets_config_id_key ON signing_secrets (config_id) WHERE valid_until IS NULL;
CREATE INDEX signing_secrets_valid_until_idx ON signing_secrets (valid_until) WHERE valid_until IS NOT NULL;

-- Where messages go by mail. What is deleted is gone.
CREATE TABLE smtp_configs (
    id UUID NOT NULL,
    user_id UUID NOT NULL,
    organization_id UUID NOT NULL,
    host TEXT NOT NULL,
    port BIGINT NOT NULL,
    security TEXT NOT NULL,
    username TEXT,
    -- Sealed.
    password TEXT,
    from_email TEXT NOT NULL,
    from_name TEXT NOT NULL,
    -- A JSON array of texts.
    recipients TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT smtp_configs_pkey PRIMARY KEY (id),
    CONSTRAINT smtp_configs_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT smtp_configs_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT smtp_configs_security_is_known CHECK (security IN ('starttls', 'tls', 'none'))
);
CREATE UNIQUE INDEX smtp_configs_organization_id_key ON smtp_configs (organization_id);

-- What happened. There is none that no delivery is about.
CREATE TABLE events (
    id UUID NOT NULL,
    organization_id UUID NOT NULL,
    kind TEXT NOT NULL,
    -- A JSON object of texts.
    facts TEXT NOT NULL,
    -- The words that were found for it. Absent until somebody looked for them.
    body TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT events_pkey PRIMARY KEY (id),
    CONSTRAINT events_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

-- Telling one channel of one event.
CREATE TABLE deliveries (
    id UUID NOT NULL,
    event_id UUID NOT NULL,
    organization_id UUID NOT NULL,
    channel TEXT NOT NULL,
    -- Of a webhook or of mail. Refers to nothing, because what was delivered outlives it.
    config_id UUID NOT NULL,
    state TEXT NOT NULL,
    -- How often it was claimed. Only grows, and tells the holder of a claim from earlier ones.
    attempt INTEGER NOT NULL,
    -- How many attempts failed since it was made or somebody last asked for it.
    failures INTEGER NOT NULL,
    -- When it is due, while it waits.
    next_at TIMESTAMPTZ NOT NULL,
    lease_instance UUID,
    lease_boot UUID,
    lease_until TIMESTAMPTZ,
    -- Why nobody tries any more; empty otherwise.
    reason TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    CONSTRAINT deliveries_pkey PRIMARY KEY (id),
    CONSTRAINT deliveries_event_id_fkey FOREIGN KEY (event_id) REFERENCES events (id),
    CONSTRAINT deliveries_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT deliveries_channel_is_known CHECK (channel IN ('slack', 'discord', 'generic', 'smtp')),
    CONSTRAINT deliveries_state_is_known CHECK (state IN ('pending', 'sending', 'delivered', 'dead')),
    CONSTRAINT deliveries_over_is_finished CHECK (
        (state IN ('pending', 'sending')) = (finished_at IS NULL)
    ),
    CONSTRAINT deliveries_sending_is_leased CHECK (
        (state = 'sending') = (lease_until IS NOT NULL)
        AND (state = 'sending') = (lease_instance IS NOT NULL)
        AND (state = 'sending') = (lease_boot IS NOT NULL)
    ),
    CONSTRAINT deliveries_dead_has_reason CHECK ((state = 'dead') = (reason <> ''))
);
CREATE UNIQUE INDEX deliveries_event_id_config_id_key ON deliveries (event_id, config_id);
-- Who claims looks from channel to channel, and at the first few of each.
CREATE INDEX deliveries_pending_idx ON deliveries (config_id, next_at, id) WHERE state = 'pending';
CREATE INDEX deliveries_sending_idx ON deliveries (config_id) WHERE state = 'sending';
CREATE INDEX deliveries_finished_at_idx ON deliveries (state, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX deliveries_organization_id_created_at_idx ON deliveries (organization_id, created_at, id);
CREATE INDEX deliveries_organization_id_state_idx ON deliveries (organization_id, state, created_at, id);
CREATE INDEX deliveries_organization_id_channel_idx ON deliveries (organization_id, channel, created_at, id);

-- One attempt at a delivery, which goes with it.
CREATE TABLE delivery_attempts (
    delivery_id UUID NOT NULL,
    number INTEGER NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    took_ms BIGINT NOT NULL,
    -- What the receiver answered with, if it did.
    status INTEGER,
    error TEXT NOT NULL,
    CONSTRAINT delivery_attempts_pkey PRIMARY KEY (delivery_id, number),
    CONSTRAINT delivery_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES deliveries (id)
        ON DELETE CASCADE
);
