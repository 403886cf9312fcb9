"""Commands of the client: `centgate call`, `centgate services`, `centgate wallet`, `centgate receipt`."""
