"""Parts of texts that become features: words, parts of codes, items of lists, n-grams."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from urllib.parse import urlsplit

WORD = re.compile(r"(?u)\w\w+")
"""Two or more letters, digits or underscores."""

EMAIL = re.compile(r"[^@\s]+@([^@\s]+\.[^@\s.]+)")
WEB_ADDRESS = re.compile(r"(?:https?|ftp)://\S+|www\.\S+", re.IGNORECASE)
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
"""Letters of scripts without spaces between words: Thai, Khmer, Chinese, Japanese and others."""

LONGEST_PREFIX = 6
NGRAM = 3


def words(text: str) -> list[str]:
    """Words in lower case; where words are not separated, pairs of characters.

    Example:
        >>> words("The red fox"), words("東京都")
        (['the', 'red', 'fox'], ['東京', '京都'])
    """
    found = []
    for word in WORD.findall(text.lower()):
        if _UNSPACED.search(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            found.append(word)
    return found


def ngrams(text: str) -> list[str]:
    """Three consecutive characters of each word with its boundaries: spellings that are similar.

    Example:
        >>> ngrams("Ann B")
        [' an', 'ann', 'nn ', ' b ']
    """
    found = []
    for word in re.findall(r"\w+", text.lower()):
        padded = f" {word} "
        found += [padded[i : i + NGRAM] for i in range(len(padded) - NGRAM + 1)]
    return found


def value(text: str) -> list[str]:
    """The whole text: a category."""
    return [text]


def prefixes(text: str) -> list[str]:
    """A code and its beginnings, which often stand for a region or a group.

    Example:
        >>> prefixes("02139")
        ['0*', '02*', '021*', '02139']
        >>> prefixes("AB-1200-X")
        ['AB*', 'AB-1200*', 'AB-1200-X']
    """
    parts = re.split(r"([-_/.: ])", text)
    if len(parts) > 1:
        starts = ["".join(parts[:end]) for end in range(1, min(len(parts), 2 * LONGEST_PREFIX), 2)]
    else:
        starts = [text[:end] for end in range(1, min(len(text), LONGEST_PREFIX) - 1)]
    return [*(f"{start}*" for start in starts if start and start != text), text]


def email_domain(text: str) -> list[str]:
    """The domain of an e-mail address, and its ending.

    Example:
        >>> email_domain("ann@mail.example.org")
        ['@mail.example.org', '.org']
    """
    match = EMAIL.fullmatch(text)
    if match is None:
        return []
    domain = match[1].lower()
    return [f"@{domain}", f".{domain.rpartition('.')[2]}"]


def web_host(text: str) -> list[str]:
    """The host of a web address, and the first part of its path.

    Example:
        >>> web_host("https://www.example.org/shop/7")
        ['example.org', 'example.org/shop']
    """
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
    except ValueError:
        return []
    host = (parts.hostname or "").removeprefix("www.")
    first = parts.path.strip("/").split("/")[0]
    return [host, f"{host}/{first}"] if host and first else [host] if host else []


def network(text: str) -> list[str]:
    """The networks that an IP address is in.

    Example:
        >>> network("192.168.1.7")
        ['192.0.0.0/8', '192.168.0.0/16', '192.168.1.0/24']
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return []
    lengths = (8, 16, 24) if address.version == 4 else (32, 48, 64)
    return [str(ipaddress.ip_network(f"{address}/{length}", strict=False)) for length in lengths]


def items(text: str, separator: str) -> list[str]:
    """The items of a list, in lower case; ``json`` is the separator of JSON lists.

    Example:
        >>> items("Red|blue", "|"), items('["a", 3]', "json"), items("{a,b}", ",")
        (['red', 'blue'], ['a', '3'], ['a', 'b'])
    """
    if separator == "json":
        found = _from_json(text)
        if found is None:
            return items(text, ",")
        parts = [str(item) for item in found]
    else:
        enclosed = len(text) > 1 and text[0] + text[-1] in ("[]", "{}", "()")
        parts = (text[1:-1] if enclosed else text).split(separator)
    return [item for part in parts if (item := part.strip().strip("\"'").lower())]


def _from_json(text: str) -> list[object] | None:
    for candidate in (text, text.replace("'", '"')):  # lists of Python have other quotes
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, list) else None
    return None


_BY_FORM: dict[str, Callable[[str], list[str]]] = {
    "words": words,
    "n-grams": ngrams,
    "value": value,
    "prefixes": prefixes,
    "e-mail": email_domain,
    "web address": web_host,
    "IP address": network,
}
FORMS = tuple(_BY_FORM)


def tokenizer(form: str) -> Callable[[str], list[str]]:
    """The function of a form; ``list X`` stands for a list with the separator X."""
    if form.startswith("list "):
        separator = form.removeprefix("list ")
        return lambda text: items(text, separator)
    return _BY_FORM[form]
