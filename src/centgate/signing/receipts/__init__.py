"""Statements signed by the server (offers, receipts, answers), and their verification."""
