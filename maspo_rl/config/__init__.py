"""Configuration: the schema (`schema`), composing it from files and overrides (`load`), and checking it (`check`)."""
