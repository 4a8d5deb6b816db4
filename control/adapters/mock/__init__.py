"""Servers that speak vLLM's wire and need no GPU: for gateways, load drivers and clients under test."""
