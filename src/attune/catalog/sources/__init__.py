"""What a pack's files say, as plain values; or every fault in them, each with its file, field and rule."""
