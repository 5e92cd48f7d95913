DROP TABLE application_watch_paths;
