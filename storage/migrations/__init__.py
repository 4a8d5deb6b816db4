"""The history of the store's schema, applied by `storage.migrate` when a store is opened."""
