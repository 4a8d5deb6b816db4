"""The history of the store's schema, applied by `storage.migrate` when a store is opened.

It only goes forward: an older Headway refuses a newer store instead of taking columns away from it.
"""
