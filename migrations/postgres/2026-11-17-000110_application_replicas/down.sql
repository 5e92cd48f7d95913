DROP TRIGGER deployments_change_routes ON deployments;
CREATE CONSTRAINT TRIGGER deployments_change_routes
    AFTER UPDATE OF container_id, container_state, container_address, container_port ON deployments
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
        (OLD.container_id, OLD.container_state, OLD.container_address, OLD.container_port)
        IS DISTINCT FROM
        (NEW.container_id, NEW.container_state, NEW.container_address, NEW.container_port)
    )
    EXECUTE FUNCTION advance_routes_epoch();
ALTER TABLE deployments DROP COLUMN further_copies;
DROP TABLE application_replicas;
