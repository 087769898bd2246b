"""The web console: reads the SQL views, asks the manager through the broker, decides nothing."""
