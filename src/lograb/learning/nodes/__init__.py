"""Task 2: models that classify the nodes of patches, and their one training loop."""
