"""What a process needs whatever it computes: progress, signals, memory, masked secrets."""
