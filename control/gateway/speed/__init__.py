"""What the gateway costs: measured beside a bare pass-through and another router, over real sockets."""
