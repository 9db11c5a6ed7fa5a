"""Files of the program: written whole or not at all, and read with checks; the floor that everything stands on."""
