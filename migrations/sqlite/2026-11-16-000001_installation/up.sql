-- The id of the installation, which its data directory and its objects on the engine carry too.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- One row at most: the first server that uses the database writes it.
CREATE TABLE installation_identity (
    singleton INTEGER NOT NULL,
    id BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT installation_identity_pkey PRIMARY KEY (singleton),
    CONSTRAINT installation_identity_is_one CHECK (singleton = 1)
) STRICT;
