"""What one asks a recording, a question at a time: the answers of commands for agents and of `torchwhy mcp`."""
