"""Everything there is to say of a trace or a job: what the JSON holds, and the source of every view."""
