-- The ports of the host that containers of extensions publish.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

CREATE TABLE extension_ports (
    port INTEGER NOT NULL,
    protocol TEXT NOT NULL,
    organization_id BLOB NOT NULL,
    extension_key TEXT NOT NULL,
    execution_id BLOB NOT NULL,
    container TEXT NOT NULL,
    container_port INTEGER NOT NULL,
    CONSTRAINT extension_ports_pkey PRIMARY KEY (port, protocol),
    CONSTRAINT extension_ports_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX extension_ports_organization_id_extension_key_idx ON extension_ports (organization_id, extension_key);
