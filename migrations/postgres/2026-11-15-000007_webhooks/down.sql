DROP INDEX jobs_stops_idx;
DROP TABLE webhook_skips;
DROP TABLE webhook_deliveries;
DROP TABLE webhook_secrets;
