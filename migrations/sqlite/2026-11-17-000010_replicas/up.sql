-- The servers of one installation that share this database, and the one that leads.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes. Here they stay empty:
-- a SQLite file has one server.
CREATE TABLE replicas (
    id BLOB NOT NULL,
    -- The run of the server: a new one for each start.
    boot BLOB NOT NULL,
    version TEXT NOT NULL,
    hostname TEXT NOT NULL,
    address TEXT NOT NULL,
    -- The id of the container engine, or null while it is unknown.
    engine TEXT,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    -- The time at which the server was stopped, or null while it runs.
    left_at INTEGER,
    -- The routes epoch that the front proxy of the server has.
    routes_seen INTEGER NOT NULL,
    CONSTRAINT replicas_pkey PRIMARY KEY (id)
) STRICT;

-- One row at most. The epoch grows with every change of the leader.
CREATE TABLE leadership (
    singleton INTEGER NOT NULL,
    replica BLOB NOT NULL,
    boot BLOB NOT NULL,
    epoch INTEGER NOT NULL,
    valid_until INTEGER NOT NULL,
    CONSTRAINT leadership_pkey PRIMARY KEY (singleton),
    CONSTRAINT leadership_is_one CHECK (singleton = 1)
) STRICT;

-- What each replica still has to drain before a version is stopped.
CREATE TABLE drains (
    replica BLOB NOT NULL,
    application_id BLOB NOT NULL,
    -- The container, or an empty text for any previous target.
    container TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    drained_at INTEGER,
    CONSTRAINT drains_pkey PRIMARY KEY (replica, application_id, container)
) STRICT;

-- The version of Launchway that wrote the catalog of extensions. One row at most.
CREATE TABLE catalog_version (
    singleton INTEGER NOT NULL,
    version TEXT NOT NULL,
    CONSTRAINT catalog_version_pkey PRIMARY KEY (singleton),
    CONSTRAINT catalog_version_is_one CHECK (singleton = 1)
) STRICT;
