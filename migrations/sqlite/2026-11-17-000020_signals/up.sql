-- Signals: commits that change routes or jobs are announced to those who wait for them.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- Moves whenever something changes that a route is made of. Triggers move it, so that no writer can
-- forget to, and a statement typed by hand counts as well.
CREATE TABLE routes_epoch (
    id INTEGER NOT NULL,
    value INTEGER NOT NULL,
    CONSTRAINT routes_epoch_pkey PRIMARY KEY (id),
    CONSTRAINT routes_epoch_is_one CHECK (id = 1)
) STRICT;
INSERT INTO routes_epoch (id, value) VALUES (1, 1);

-- Moves whenever a job is enqueued, cancelled, or back in the queue.
CREATE TABLE jobs_epoch (
    id INTEGER NOT NULL,
    value INTEGER NOT NULL,
    CONSTRAINT jobs_epoch_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_epoch_is_one CHECK (id = 1)
) STRICT;
INSERT INTO jobs_epoch (id, value) VALUES (1, 1);

CREATE TRIGGER hosts_change_routes_on_insert AFTER INSERT ON hosts BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER hosts_change_routes_on_update AFTER UPDATE ON hosts
WHEN (OLD.host, OLD.application_id, OLD.extension_route_id)
    IS NOT (NEW.host, NEW.application_id, NEW.extension_route_id) BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER hosts_change_routes_on_delete AFTER DELETE ON hosts BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER applications_change_routes_on_update
AFTER UPDATE OF live_deployment_id, is_stopped, deleted_at ON applications
WHEN (OLD.live_deployment_id, OLD.is_stopped, OLD.deleted_at)
    IS NOT (NEW.live_deployment_id, NEW.is_stopped, NEW.deleted_at) BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER deployments_change_routes_on_update
AFTER UPDATE OF container_id, container_state, container_address, container_port ON deployments
WHEN (OLD.container_id, OLD.container_state, OLD.container_address, OLD.container_port)
    IS NOT (NEW.container_id, NEW.container_state, NEW.container_address, NEW.container_port) BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER extension_routes_change_routes_on_insert AFTER INSERT ON extension_routes BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER extension_routes_change_routes_on_update AFTER UPDATE ON extension_routes
WHEN (OLD.id, OLD.organization_id, OLD.extension_key, OLD.host, OLD.container_id, OLD.address, OLD.port)
    IS NOT (NEW.id, NEW.organization_id, NEW.extension_key, NEW.host, NEW.container_id, NEW.address, NEW.port) BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;
CREATE TRIGGER extension_routes_change_routes_on_delete AFTER DELETE ON extension_routes BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
END;

CREATE TRIGGER jobs_are_announced_on_insert AFTER INSERT ON jobs BEGIN
    UPDATE jobs_epoch SET value = value + 1 WHERE id = 1;
END;
-- It is back in the queue, due earlier, cancelled while it waited, or is to be cancelled while it runs.
CREATE TRIGGER jobs_are_announced_on_update AFTER UPDATE OF state, run_at, cancel_requested_at ON jobs
WHEN NEW.state = 'queued' AND (OLD.state <> 'queued' OR NEW.run_at < OLD.run_at)
    OR NEW.state = 'cancelled' AND OLD.state = 'queued'
    OR NEW.cancel_requested_at IS NOT NULL AND OLD.cancel_requested_at IS NULL BEGIN
    UPDATE jobs_epoch SET value = value + 1 WHERE id = 1;
END;
