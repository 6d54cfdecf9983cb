"""Pure rules: facts and `now` in, a decision out. No store, no process, no file, no clock."""
