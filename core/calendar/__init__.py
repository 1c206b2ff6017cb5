"""From dated sessions, as an exchange or a calendar file has them, to a schedule's spec, and what the two disagree about."""
