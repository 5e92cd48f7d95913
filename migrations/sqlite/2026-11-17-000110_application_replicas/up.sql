-- Several copies of an application.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- The number of copies of applications that have more than one. A table of its own, because that of applications has as
-- many columns as the code can name.
CREATE TABLE application_replicas (
    application_id BLOB NOT NULL,
    replicas INTEGER NOT NULL,
    CONSTRAINT application_replicas_pkey PRIMARY KEY (application_id),
    CONSTRAINT application_replicas_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id),
    CONSTRAINT application_replicas_are_several CHECK (replicas BETWEEN 2 AND 100)
) STRICT;

-- The containers of the copies of a deployment after the first one, as a JSON array; null if there are none.
ALTER TABLE deployments ADD COLUMN further_copies TEXT;
DROP TRIGGER deployments_change_routes_on_update;
CREATE TRIGGER deployments_change_routes_on_update
AFTER UPDATE OF container_id, container_state, container_address, container_port, further_copies ON deployments
WHEN (OLD.container_id, OLD.container_state, OLD.container_address, OLD.container_port, OLD.further_copies)
    IS NOT (NEW.container_id, NEW.container_state, NEW.container_address, NEW.container_port, NEW.further_copies) BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
