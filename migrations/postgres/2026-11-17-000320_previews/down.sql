DROP TABLE previews;
DROP TABLE preview_settings;
