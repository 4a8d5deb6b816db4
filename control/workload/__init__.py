"""Work that arrives: readers of public traces, generators, scenarios. All randomness of a run lives here.

load.load_trace reads a file, arrivals.arrange gives it times and draws, generate.generate and
scenarios.window make work up, windows.windowed cuts minutes out, describe.describe counts,
write.write_trace writes our own format.
"""
