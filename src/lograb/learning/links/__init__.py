"""Task 3: methods that predict edges between fragments."""
