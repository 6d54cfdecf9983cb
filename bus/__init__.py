"""What must be right: the store, the rules of turns and delivery, notify and bell files.

Knows no terminal and never imports `tt`, `hooks` or `monitor`. Loaded by hooks and hot
verbs, so at run time it keeps to the small part of the standard library that starts fast.
"""
