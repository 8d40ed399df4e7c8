"""The rules of tools/tidy: tree.py reads, c_source.py understands C, the *_rules.py judge."""
