DROP TABLE search_postings;
DROP TABLE search_indexes;
