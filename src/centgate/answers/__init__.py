"""Fields of services' answers that are many, and how they are filled from facts and verdicts."""
