"""What attacks that assemble patches share: overlaps, Procrustes maps, RANSAC, synchronisation."""
