"""Forms as browsers send them: small, and each field once."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from gatemesh_console.errors import BadInputError

MOST_BYTES = 16_384
MOST_FIELDS = 40


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; of a field that comes twice, the last.

    Raises:
        BadInputError: it is too large, or not UTF-8.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise BadInputError("form", f"larger than {MOST_BYTES} bytes; shorten it")
    return parse_form(bytes(body))


def parse_form(body: bytes) -> dict[str, str]:
    """Return the fields of an encoded form; raises as `read_form` does."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        raise BadInputError(
            "form", f"must be at most {MOST_FIELDS} fields of UTF-8; reload the page"
        ) from None
    return {name: value.strip() for name, value in pairs}
