"""Questions about a recording, one at a time: the answers of commands for agents and of `torchwhy mcp`."""
