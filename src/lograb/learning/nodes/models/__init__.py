"""The architectures, one file per family; names and hyper-parameters in `lograb.learning.nodes.catalog`."""
