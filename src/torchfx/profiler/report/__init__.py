"""Everything there is to say of a trace or a job: schema 1 of the JSON, and the source of every view."""
