"""Graph learning: the only room that imports torch (extra ``gnn``)."""
