"""The user's own data as its negative control: what comes out where nothing can be found, and from other samples."""
