"""Records and protocols that the layers hand to each other."""
