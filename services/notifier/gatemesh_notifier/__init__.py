"""The notifier: tells people what happens to their engines, through apprise."""
