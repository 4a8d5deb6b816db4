"""What if: forks of the live state, run ahead under other settings."""
