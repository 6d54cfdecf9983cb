"""Small programs that harnesses start. They decide from `bus`, fail open and finish fast."""
