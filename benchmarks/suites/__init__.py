"""The suites that are for developers alone: they need a checkout, and mostly programs of others."""
