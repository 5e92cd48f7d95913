DROP INDEX webhook_deliveries_taken_at_idx;
ALTER TABLE webhook_deliveries RENAME TO webhook_deliveries_by_mark;
ALTER TABLE webhook_deliveries_by_mark RENAME CONSTRAINT webhook_deliveries_pkey TO webhook_deliveries_by_mark_pkey;
ALTER TABLE webhook_deliveries_by_mark
    RENAME CONSTRAINT webhook_deliveries_application_id_fkey TO webhook_deliveries_by_mark_fkey;
CREATE TABLE webhook_deliveries (
    application_id UUID NOT NULL,
    body_hash BYTEA NOT NULL,
    -- What the code host calls it, if it does.
    delivery_id TEXT,
    taken_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (application_id, body_hash),
    CONSTRAINT webhook_deliveries_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
);
-- The body of a delivery with an id is not known any more: its mark is equal to no hash.
INSERT INTO webhook_deliveries (application_id, body_hash, delivery_id, taken_at)
    SELECT application_id, convert_to(mark, 'UTF8'), CASE WHEN mark LIKE 'id:%' THEN substr(mark, 4) END, taken_at
    FROM webhook_deliveries_by_mark;
DROP TABLE webhook_deliveries_by_mark;
CREATE UNIQUE INDEX webhook_deliveries_application_id_delivery_id_key
    ON webhook_deliveries (application_id, delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX webhook_deliveries_taken_at_idx ON webhook_deliveries (taken_at);
