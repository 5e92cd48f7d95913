-- Signals: commits that change routes or jobs are announced to every replica.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.

-- Moves whenever something changes that a route is made of. Triggers move it, so that no writer can
-- forget to, and a statement typed by hand counts as well.
CREATE TABLE routes_epoch (
    id INTEGER NOT NULL,
    value BIGINT NOT NULL,
    CONSTRAINT routes_epoch_pkey PRIMARY KEY (id),
    CONSTRAINT routes_epoch_is_one CHECK (id = 1)
);
INSERT INTO routes_epoch (id, value) VALUES (1, 1);

-- Only SQLite moves it, where commits are serial anyway. Here it would make them so.
CREATE TABLE jobs_epoch (
    id INTEGER NOT NULL,
    value BIGINT NOT NULL,
    CONSTRAINT jobs_epoch_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_epoch_is_one CHECK (id = 1)
);
INSERT INTO jobs_epoch (id, value) VALUES (1, 1);

-- The channel has the name of the schema, because two installations may have a schema each in one
-- database. As a name it is cut to the length that channels may have.
CREATE FUNCTION advance_routes_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE routes_epoch SET value = value + 1 WHERE id = 1;
    PERFORM pg_notify(('launchway_' || TG_TABLE_SCHEMA)::name::text, 'routes');
    RETURN NULL;
END
$$;

CREATE FUNCTION notify_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(('launchway_' || TG_TABLE_SCHEMA)::name::text, 'jobs');
    RETURN NULL;
END
$$;

-- Deferred to the end of the transaction, as those of the identity epoch are. NOTIFY makes commits wait
-- for each other: a write that leaves every value as it was does not send one.
CREATE CONSTRAINT TRIGGER hosts_change_routes
    AFTER INSERT OR DELETE ON hosts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER hosts_change_routes_on_update
    AFTER UPDATE ON hosts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER applications_change_routes
    AFTER UPDATE OF live_deployment_id, is_stopped, deleted_at ON applications
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
        (OLD.live_deployment_id, OLD.is_stopped, OLD.deleted_at)
        IS DISTINCT FROM (NEW.live_deployment_id, NEW.is_stopped, NEW.deleted_at)
    )
    EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER deployments_change_routes
    AFTER UPDATE OF container_id, container_state, container_address, container_port ON deployments
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
        (OLD.container_id, OLD.container_state, OLD.container_address, OLD.container_port)
        IS DISTINCT FROM (NEW.container_id, NEW.container_state, NEW.container_address, NEW.container_port)
    )
    EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER extension_routes_change_routes
    AFTER INSERT OR DELETE ON extension_routes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION advance_routes_epoch();
CREATE CONSTRAINT TRIGGER extension_routes_change_routes_on_update
    AFTER UPDATE ON extension_routes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION advance_routes_epoch();

CREATE TRIGGER jobs_are_announced
    AFTER INSERT ON jobs
    FOR EACH STATEMENT EXECUTE FUNCTION notify_jobs();
-- It is back in the queue, due earlier, cancelled while it waited, or is to be cancelled while it runs.
CREATE TRIGGER jobs_are_announced_on_update
    AFTER UPDATE OF state, run_at, cancel_requested_at ON jobs
    FOR EACH ROW WHEN (
        NEW.state = 'queued' AND (OLD.state <> 'queued' OR NEW.run_at < OLD.run_at)
        OR NEW.state = 'cancelled' AND OLD.state = 'queued'
        OR NEW.cancel_requested_at IS NOT NULL AND OLD.cancel_requested_at IS NULL
    )
    EXECUTE FUNCTION notify_jobs();
