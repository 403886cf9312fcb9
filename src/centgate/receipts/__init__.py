"""What a server signs of its own: offers, receipts, and what an answer was; and how that is checked."""
