CREATE TABLE webhook_deliveries_by_body (
    application_id BLOB NOT NULL,
    body_hash BLOB NOT NULL,
    -- What the code host calls it, if it does.
    delivery_id TEXT,
    taken_at INTEGER NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (application_id, body_hash),
    CONSTRAINT webhook_deliveries_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT;
-- The body of a delivery with an id is not known any more: its mark is equal to no hash.
INSERT INTO webhook_deliveries_by_body (application_id, body_hash, delivery_id, taken_at)
    SELECT application_id, CAST(mark AS BLOB), CASE WHEN mark LIKE 'id:%' THEN substr(mark, 4) END, taken_at
    FROM webhook_deliveries;
DROP TABLE webhook_deliveries;
ALTER TABLE webhook_deliveries_by_body RENAME TO webhook_deliveries;
CREATE UNIQUE INDEX webhook_deliveries_application_id_delivery_id_key
    ON webhook_deliveries (application_id, delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX webhook_deliveries_taken_at_idx ON webhook_deliveries (taken_at);
