-- Applications, their deployments and logs, deploy keys, and requests that are carried out once.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

CREATE TABLE applications (
    id UUID NOT NULL,
    organization_id UUID NOT NULL,
    user_id UUID NOT NULL,
    name TEXT NOT NULL,
    -- The address of a git repository, or an image if that is the build pack.
    repository TEXT NOT NULL,
    branch TEXT,
    base_path TEXT NOT NULL,
    dockerfile_path TEXT NOT NULL,
    build_pack TEXT NOT NULL,
    environment TEXT NOT NULL,
    domain TEXT,
    port BIGINT NOT NULL,
    pre_run_command TEXT,
    post_run_command TEXT,
    proxy_server TEXT NOT NULL,
    -- A JSON array of texts.
    labels TEXT NOT NULL,
    health_check_path TEXT,
    auto_deploy BOOLEAN NOT NULL,
    -- Sealed.
    build_variables TEXT NOT NULL,
    -- Sealed.
    environment_variables TEXT NOT NULL,
    -- Sealed.
    credentials TEXT,
    status_id UUID NOT NULL,
    status TEXT NOT NULL,
    status_updated_at TIMESTAMPTZ NOT NULL,
    -- The deployment whose version serves. Refers to nothing, because each would have to be first.
    live_deployment_id UUID,
    is_stopped BOOLEAN NOT NULL,
    -- What a search looks at, in lower case, one text on a line.
    search TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ,
    CONSTRAINT applications_pkey PRIMARY KEY (id),
    CONSTRAINT applications_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT applications_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT applications_status_is_known CHECK (
        status IN ('queued', 'cloning', 'building', 'deploying', 'running', 'failed', 'stopped')
    ),
    CONSTRAINT applications_stopped_was_live CHECK (NOT is_stopped OR live_deployment_id IS NOT NULL)
);
CREATE UNIQUE INDEX applications_organization_id_name_environment_key
    ON applications (organization_id, name, environment) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX applications_domain_key
    ON applications (domain) WHERE deleted_at IS NULL AND domain IS NOT NULL;
CREATE INDEX applications_organization_id_created_at_idx
    ON applications (organization_id, created_at, id) WHERE deleted_at IS NULL;

CREATE TABLE deployments (
    id UUID NOT NULL,
    application_id UUID NOT NULL,
    organization_id UUID NOT NULL,
    kind TEXT NOT NULL,
    rollback_to UUID,
    -- Refers to nothing, because the job may come behind it in the same unit.
    job_id UUID NOT NULL,
    status_id UUID NOT NULL,
    status TEXT NOT NULL,
    status_updated_at TIMESTAMPTZ NOT NULL,
    commit_hash TEXT,
    image TEXT,
    container_id TEXT,
    container_name TEXT,
    container_state TEXT,
    container_address TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT deployments_pkey PRIMARY KEY (id),
    CONSTRAINT deployments_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id),
    CONSTRAINT deployments_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT deployments_rollback_to_fkey FOREIGN KEY (rollback_to) REFERENCES deployments (id),
    CONSTRAINT deployments_status_is_known CHECK (
        status IN ('queued', 'cloning', 'building', 'deploying', 'deployed', 'failed', 'cancelled')
    ),
    CONSTRAINT deployments_kind_is_known CHECK (kind IN ('fresh', 'rollback')),
    CONSTRAINT deployments_rollback_has_aim CHECK ((kind = 'rollback') = (rollback_to IS NOT NULL)),
    CONSTRAINT deployments_container_is_whole CHECK (
        (container_id IS NULL) = (container_name IS NULL)
        AND (container_id IS NULL) = (container_state IS NULL)
        AND (container_id IS NOT NULL OR container_address IS NULL)
    )
);
CREATE INDEX deployments_application_id_created_at_idx ON deployments (application_id, created_at, id);
CREATE INDEX deployments_job_id_idx ON deployments (job_id);
CREATE INDEX deployments_open_idx ON deployments (application_id, created_at, id)
    WHERE status IN ('queued', 'cloning', 'building', 'deploying');

-- Which numbers the kept lines of an application have: from first to last without a gap.
CREATE TABLE log_heads (
    application_id UUID NOT NULL,
    first_number BIGINT NOT NULL,
    last_number BIGINT NOT NULL,
    CONSTRAINT log_heads_pkey PRIMARY KEY (application_id),
    CONSTRAINT log_heads_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);

-- The same for the lines of a deployment, which are counted by themselves.
CREATE TABLE deployment_log_heads (
    deployment_id UUID NOT NULL,
    application_id UUID NOT NULL,
    first_number BIGINT NOT NULL,
    last_number BIGINT NOT NULL,
    -- The newest moment of a line that its container printed, whether or not that line is kept.
    last_printed_at TIMESTAMPTZ,
    CONSTRAINT deployment_log_heads_pkey PRIMARY KEY (deployment_id, application_id),
    CONSTRAINT deployment_log_heads_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);

-- The lines refer to nothing, so that appending stays cheap; the heads do.
CREATE TABLE application_logs (
    application_id UUID NOT NULL,
    number BIGINT NOT NULL,
    deployment_id UUID NOT NULL,
    -- Its place among the lines of its deployment, from 1 without a gap. Rises with the number.
    deployment_number BIGINT NOT NULL,
    level TEXT NOT NULL,
    log TEXT NOT NULL,
    -- The text in lower case, where that is more than A to Z.
    search TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT application_logs_pkey PRIMARY KEY (application_id, number)
);
CREATE INDEX application_logs_deployment_id_deployment_number_idx
    ON application_logs (deployment_id, deployment_number);

CREATE TABLE idempotency_keys (
    organization_id UUID NOT NULL,
    user_id UUID NOT NULL,
    operation TEXT NOT NULL,
    name TEXT NOT NULL,
    body_hash BYTEA NOT NULL,
    -- What the request made: the id of any kind of record.
    resource UUID NOT NULL,
    -- Sealed. Absent until it was given.
    answer TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (organization_id, user_id, operation, name),
    CONSTRAINT idempotency_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT idempotency_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys (created_at);

CREATE TABLE deploy_keys (
    organization_id UUID NOT NULL,
    public_key TEXT NOT NULL,
    -- Sealed.
    private_key TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT deploy_keys_pkey PRIMARY KEY (organization_id),
    CONSTRAINT deploy_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
