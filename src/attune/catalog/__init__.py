"""What users define: packs with their actions, triggers, rules, runtimes and permission sets.

`sources/` reads a pack's files into plain values and finds every fault in them; `loading/` brings the
database to what they say; `packs.py` does both for a folder or an upload, whole or not at all.
"""
