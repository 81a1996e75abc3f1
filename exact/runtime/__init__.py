"""What long or foreign work needs around it: workers, journals, whole files, provenance, patches."""
