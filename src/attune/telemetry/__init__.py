"""What Attune tells about itself: logs now, metrics and traces beside them."""
