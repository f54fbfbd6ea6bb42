"""Public datasets, one file per publisher: their raw formats, read without executing anything."""
