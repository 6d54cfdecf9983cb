"""The installer: writes into other programs' settings, and takes back exactly what it wrote.

`specs` is the table of harnesses; `engine` runs it. `edit` changes files that belong to others,
`work` owns every touch of the file system, `managed` remembers what is ours.
"""
