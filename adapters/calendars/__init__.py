"""Calendars that others keep, as the core's sessions: read when a person asks, never while a controller runs."""
