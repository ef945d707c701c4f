"""Networks of discrete tuples, trees among them, and chains known only by how fast they forget."""
