DROP TABLE homes;
