"""`5spot doctor` as far as it reads clusters: `reaching` the server, `examination` of what is there, `asking` for rights."""
