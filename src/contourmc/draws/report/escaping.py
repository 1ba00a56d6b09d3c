"""Data inside a page, which can never become a part of the page itself."""

import base64
import hashlib
import json
from typing import Any

# Outside ASCII, JSON itself escapes, U+2028 and U+2029 among it.
ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def script_json(data: Any) -> str:
    """JSON that may stand inside a script element, whatever strings it holds; raises for NaN and infinities."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character, escape in ESCAPED.items():
        text = text.replace(character, escape)
    return text


def script_hash(script: str) -> str:
    """The source expression by which a content security policy lets this very script run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
