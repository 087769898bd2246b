"""`python -m gatemesh_mesh`, which `./mesh` hands over to."""

from gatemesh_mesh.cli import main

if __name__ == "__main__":
    main()
