"""Reports as pictures: PNG with matplotlib, or characters in a terminal."""
