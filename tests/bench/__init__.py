"""The figures: what `python -m tests bench` measures. It reports and never gates."""
