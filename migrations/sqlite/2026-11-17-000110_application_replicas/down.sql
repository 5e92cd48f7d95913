DROP TRIGGER deployments_change_routes_on_update;
CREATE TRIGGER deployments_change_routes_on_update
AFTER UPDATE OF container_id, container_state, container_address, container_port ON deployments
WHEN (OLD.container_id, OLD.container_state, OLD.container_address, OLD.container_port)
    IS NOT (NEW.container_id, NEW.container_state, NEW.container_address, NEW.container_port) BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
ALTER TABLE deployments DROP COLUMN further_copies;
DROP TABLE application_replicas;
