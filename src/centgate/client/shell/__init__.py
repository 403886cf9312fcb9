"""The buyer at a terminal: `centgate call`, `centgate services`, `centgate wallet`."""
