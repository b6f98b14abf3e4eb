"""`retry_after`: how long a server asks to wait."""

import datetime
from email.utils import parsedate_to_datetime
from typing import Dict, Optional


def retry_after(headers: Dict[str, str]) -> Optional[float]:
    """Seconds that `retry-after` asks for; a date is relative to the answer's own `date`."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    until, now = _http_date(text), _http_date(headers.get("date", "")) or datetime.datetime.now(datetime.timezone.utc)
    return max(0.0, (until - now).total_seconds()) if until else None


def _http_date(text: str) -> Optional[datetime.datetime]:
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=datetime.timezone.utc)
