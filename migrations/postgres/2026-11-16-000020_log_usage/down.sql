DROP TABLE log_usage;
