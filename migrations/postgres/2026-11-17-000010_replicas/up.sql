-- The servers of one installation that share this database, and the one that leads.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes. There they stay empty:
-- a SQLite file has one server.
CREATE TABLE replicas (
    id UUID NOT NULL,
    -- The run of the server: a new one for each start.
    boot UUID NOT NULL,
    version TEXT NOT NULL,
    hostname TEXT NOT NULL,
    address TEXT NOT NULL,
    -- The id of the container engine, or null while it is unknown.
    engine TEXT,
    started_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL,
    -- The time at which the server was stopped, or null while it runs.
    left_at TIMESTAMPTZ,
    -- The routes epoch that the front proxy of the server has.
    routes_seen BIGINT NOT NULL,
    CONSTRAINT replicas_pkey PRIMARY KEY (id)
);

-- One row at most. The epoch grows with every change of the leader.
CREATE TABLE leadership (
    singleton INTEGER NOT NULL,
    replica UUID NOT NULL,
    boot UUID NOT NULL,
    epoch BIGINT NOT NULL,
    valid_until TIMESTAMPTZ NOT NULL,
    CONSTRAINT leadership_pkey PRIMARY KEY (singleton),
    CONSTRAINT leadership_is_one CHECK (singleton = 1)
);

-- What each replica still has to drain before a version is stopped.
CREATE TABLE drains (
    replica UUID NOT NULL,
    application_id UUID NOT NULL,
    -- The container, or an empty text for any previous target.
    container TEXT NOT NULL,
    requested_at TIMESTAMPTZ NOT NULL,
    drained_at TIMESTAMPTZ,
    CONSTRAINT drains_pkey PRIMARY KEY (replica, application_id, container)
);

-- The version of Launchway that wrote the catalog of extensions. One row at most.
CREATE TABLE catalog_version (
    singleton INTEGER NOT NULL,
    version TEXT NOT NULL,
    CONSTRAINT catalog_version_pkey PRIMARY KEY (singleton),
    CONSTRAINT catalog_version_is_one CHECK (singleton = 1)
);
