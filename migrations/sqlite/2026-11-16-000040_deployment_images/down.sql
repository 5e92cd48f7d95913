DROP TABLE deployment_images;
