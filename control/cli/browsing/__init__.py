"""A real browser before a real dashboard: what a session costs, and pictures of the pages."""
