DROP TABLE deploy_keys;
DROP TABLE idempotency_keys;
DROP TABLE application_logs;
DROP TABLE deployment_log_heads;
DROP TABLE log_heads;
DROP TABLE deployments;
DROP TABLE applications;
