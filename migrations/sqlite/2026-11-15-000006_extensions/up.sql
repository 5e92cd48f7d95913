-- Extensions, their runs, and the names that lead to their containers.
-- Ids are 16 bytes, moments are microseconds since 1970, in UTC.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- Without an organization, an entry of the catalog, which is everyone's. With a rowid, because
-- rows are large and most indexes lead elsewhere.
CREATE TABLE extensions (
    id BLOB NOT NULL,
    organization_id BLOB,
    key TEXT NOT NULL,
    -- The key of what it is a fork of, which may be gone.
    parent_key TEXT,
    name TEXT NOT NULL,
    -- The name in lower case, by which lists are ordered.
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    author TEXT NOT NULL,
    icon TEXT NOT NULL,
    category TEXT NOT NULL,
    kind TEXT NOT NULL,
    version TEXT NOT NULL,
    is_verified INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    yaml TEXT NOT NULL,
    -- A JSON object.
    parsed TEXT NOT NULL,
    validation TEXT NOT NULL,
    -- A JSON array.
    validation_errors TEXT NOT NULL,
    -- What a search looks at, in lower case, one text behind the other.
    search TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT extensions_pkey PRIMARY KEY (id),
    CONSTRAINT extensions_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT extensions_kind_is_known CHECK (kind IN ('install', 'run')),
    CONSTRAINT extensions_validation_is_known CHECK (validation IN ('valid', 'invalid', 'not_validated')),
    CONSTRAINT extensions_fork_has_parent CHECK ((organization_id IS NULL) = (parent_key IS NULL))
) STRICT;
-- An entry of the catalog that was withdrawn keeps its key, because it may come back.
CREATE UNIQUE INDEX extensions_key_key ON extensions (key) WHERE deleted_at IS NULL OR organization_id IS NULL;
CREATE INDEX extensions_name_key_key_idx ON extensions (name_key, key) WHERE deleted_at IS NULL;
CREATE INDEX extensions_organization_id_idx ON extensions (organization_id) WHERE organization_id IS NOT NULL;

CREATE TABLE extension_variables (
    id BLOB NOT NULL,
    extension_id BLOB NOT NULL,
    -- Its place in the definition, from 1.
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    -- As JSON.
    default_value TEXT,
    is_required INTEGER NOT NULL,
    pattern TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT extension_variables_pkey PRIMARY KEY (id),
    CONSTRAINT extension_variables_extension_id_fkey FOREIGN KEY (extension_id) REFERENCES extensions (id),
    CONSTRAINT extension_variables_kind_is_known CHECK (kind IN ('string', 'integer', 'boolean', 'array'))
) STRICT;
CREATE UNIQUE INDEX extension_variables_extension_id_position_key
    ON extension_variables (extension_id, position);

-- Which organizations have something that an extension made, by its key: what it made outlives it.
CREATE TABLE extension_installations (
    organization_id BLOB NOT NULL,
    extension_key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT extension_installations_pkey PRIMARY KEY (organization_id, extension_key),
    CONSTRAINT extension_installations_organization_id_fkey
        FOREIGN KEY (organization_id) REFERENCES organizations (id)
) STRICT, WITHOUT ROWID;

-- With a rowid, as above.
CREATE TABLE extension_executions (
    id BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    extension_id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    -- Refers to nothing, because the job may come behind it in the same unit.
    job_id BLOB NOT NULL,
    status TEXT NOT NULL,
    server_hostname TEXT NOT NULL,
    exit_code INTEGER NOT NULL,
    error_message TEXT NOT NULL,
    -- A JSON object without secrets.
    shown_values TEXT NOT NULL,
    -- Sealed.
    sealed_values TEXT NOT NULL,
    -- The YAML as it was when the run was asked for.
    definition TEXT NOT NULL,
    -- The number of its last line.
    log_seq INTEGER NOT NULL,
    -- How long its lines are together, in bytes, each with its end.
    log_bytes INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    created_at INTEGER NOT NULL,
    CONSTRAINT extension_executions_pkey PRIMARY KEY (id),
    CONSTRAINT extension_executions_organization_id_fkey
        FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT extension_executions_extension_id_fkey FOREIGN KEY (extension_id) REFERENCES extensions (id),
    CONSTRAINT extension_executions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT extension_executions_status_is_known CHECK (
        status IN ('pending', 'running', 'completed', 'failed', 'cancelled')
    ),
    CONSTRAINT extension_executions_over_is_completed CHECK (
        (status IN ('pending', 'running')) = (completed_at IS NULL)
    ),
    CONSTRAINT extension_executions_pending_is_not_started CHECK (status <> 'pending' OR started_at IS NULL),
    CONSTRAINT extension_executions_running_is_started CHECK (
        status NOT IN ('running', 'completed') OR started_at IS NOT NULL
    )
) STRICT;
CREATE INDEX extension_executions_extension_id_created_at_idx
    ON extension_executions (organization_id, extension_id, created_at, id);
CREATE INDEX extension_executions_open_idx ON extension_executions (organization_id, created_at, id)
    WHERE status IN ('pending', 'running');

CREATE TABLE execution_steps (
    id BLOB NOT NULL,
    execution_id BLOB NOT NULL,
    -- Its place, from 1, over both phases.
    step_order INTEGER NOT NULL,
    name TEXT NOT NULL,
    phase TEXT NOT NULL,
    status TEXT NOT NULL,
    exit_code INTEGER NOT NULL,
    -- How long its lines are together, in bytes, each with its end.
    log_bytes INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    created_at INTEGER NOT NULL,
    CONSTRAINT execution_steps_pkey PRIMARY KEY (id),
    CONSTRAINT execution_steps_execution_id_fkey FOREIGN KEY (execution_id) REFERENCES extension_executions (id),
    CONSTRAINT execution_steps_phase_is_known CHECK (phase IN ('run', 'validate')),
    CONSTRAINT execution_steps_status_is_known CHECK (
        status IN ('pending', 'running', 'completed', 'failed', 'cancelled')
    ),
    CONSTRAINT execution_steps_over_is_completed CHECK (
        (status IN ('pending', 'running')) = (completed_at IS NULL)
    ),
    CONSTRAINT execution_steps_pending_is_not_started CHECK (status <> 'pending' OR started_at IS NULL),
    CONSTRAINT execution_steps_running_is_started CHECK (
        status NOT IN ('running', 'completed') OR started_at IS NOT NULL
    )
) STRICT;
CREATE UNIQUE INDEX execution_steps_execution_id_step_order_key ON execution_steps (execution_id, step_order);

-- The lines refer to nothing, so that appending stays cheap: who appends moves their run's last number.
CREATE TABLE execution_logs (
    execution_id BLOB NOT NULL,
    -- From 1 without a gap.
    number INTEGER NOT NULL,
    -- Absent for what was said around the steps.
    step_id BLOB,
    -- Where it ends among the bytes of its run. Rises with the number.
    log_end INTEGER NOT NULL,
    -- The same among those of its step.
    step_end INTEGER,
    level TEXT NOT NULL,
    log TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT execution_logs_pkey PRIMARY KEY (execution_id, number),
    CONSTRAINT execution_logs_step_is_whole CHECK ((step_id IS NULL) = (step_end IS NULL))
) STRICT;
CREATE INDEX execution_logs_execution_id_log_end_idx ON execution_logs (execution_id, log_end);
CREATE INDEX execution_logs_step_id_step_end_idx ON execution_logs (step_id, step_end) WHERE step_id IS NOT NULL;

-- The names that lead to containers of extensions.
CREATE TABLE extension_routes (
    id BLOB NOT NULL,
    organization_id BLOB NOT NULL,
    extension_key TEXT NOT NULL,
    host TEXT NOT NULL,
    container_id TEXT NOT NULL,
    address TEXT NOT NULL,
    port INTEGER NOT NULL,
    CONSTRAINT extension_routes_pkey PRIMARY KEY (id),
    CONSTRAINT extension_routes_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX extension_routes_host_key ON extension_routes (host);
CREATE INDEX extension_routes_organization_id_extension_key_idx
    ON extension_routes (organization_id, extension_key);

-- Every name leads to one application or extension alone. Made anew, because SQLite adds no constraint
-- to a table that is there.
CREATE TABLE new_hosts (
    host TEXT NOT NULL,
    application_id BLOB,
    extension_route_id BLOB,
    CONSTRAINT hosts_pkey PRIMARY KEY (host),
    CONSTRAINT hosts_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id),
    -- A name goes with its route, and follows one that takes another's place.
    CONSTRAINT hosts_extension_route_id_fkey FOREIGN KEY (extension_route_id) REFERENCES extension_routes (id)
        ON UPDATE CASCADE ON DELETE CASCADE,
    CONSTRAINT hosts_leads_to_one CHECK ((application_id IS NULL) <> (extension_route_id IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO new_hosts (host, application_id) SELECT host, application_id FROM hosts;
DROP TABLE hosts;
ALTER TABLE new_hosts RENAME TO hosts;
CREATE INDEX hosts_application_id_idx ON hosts (application_id);
CREATE UNIQUE INDEX hosts_extension_route_id_key ON hosts (extension_route_id);
