"""The local stack behind ./mesh: embedded broker and database, processes, demo, tests."""
