"""Models, caches and drafts: whatever gives rows."""
