-- The ports of the host that containers of extensions publish.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

CREATE TABLE extension_ports (
    port BIGINT NOT NULL,
    protocol TEXT NOT NULL,
    organization_id UUID NOT NULL,
    extension_key TEXT NOT NULL,
    execution_id UUID NOT NULL,
    container TEXT NOT NULL,
    container_port BIGINT NOT NULL,
    CONSTRAINT extension_ports_pkey PRIMARY KEY (port, protocol),
    CONSTRAINT extension_ports_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE INDEX extension_ports_organization_id_extension_key_idx ON extension_ports (organization_id, extension_key);
