"""From blocks of rows to row statistics."""
