"""Weight files: pulled anew, verified, scanned for broken numbers, and swapped in."""
