"""One file per command of `maspo-rl`: reads its arguments, checks them, calls the rooms, prints."""
