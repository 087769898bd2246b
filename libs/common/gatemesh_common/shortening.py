"""Text that must fit: both of its ends, and a mark where something was left out. Pure."""

GAP = "[...]"


def shortened(text: str, most_bytes: int) -> str:
    """Return a text of no more bytes; what cannot travel in it is replaced."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most_bytes:
        return data.decode()
    half = max(0, (most_bytes - len(GAP)) // 2)
    if not half:
        return ""
    first = data[:half].decode("utf-8", "ignore")
    return f"{first}{GAP}{data[-half:].decode('utf-8', 'ignore')}"
