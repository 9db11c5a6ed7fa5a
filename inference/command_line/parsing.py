"""The parser of a command with a few flags, and its errors in plain words."""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence

from jsonargparse import ArgumentError, ArgumentParser, Namespace

from inference.command_line.flag_types import count
from inference.command_line.plain_words import in_plain_words

__all__ = ["add_computing_flags", "command_parser", "parse_in_plain_words"]


def command_parser(name: str, usage: str, description: str) -> ArgumentParser:
    """A parser without flags yet, whose errors are exceptions.

    Args:
        name: Name of the command.
        usage: Its usage line.
        description: What it does; line breaks are kept.
    """
    return ArgumentParser(
        prog=name,
        usage=usage,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        exit_on_error=False,
        allow_abbrev=False,
    )


def add_computing_flags(parser: ArgumentParser) -> None:
    """`--device` and `--threads`: where and with how much to compute."""
    parser.add_argument("--device", type=str, default="cpu", metavar="NAME", help="Where to compute (default cpu).")
    parser.add_argument("--threads", type=count, default=1, metavar="N", help="Threads to compute with (default 1).")


def parse_in_plain_words(parser: ArgumentParser, argv: Sequence[str], missing: Callable[[str], str] = str) -> Namespace:
    """Parse a command line.

    Args:
        parser: The parser.
        argv: The command line.
        missing: From the parser's message, that arguments which are required are not there, to one line for people.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    try:
        return parser.parse_args(list(argv))
    except (ArgumentError, ArgumentTypeError, TypeError, AttributeError) as error:
        message = str(error)
        if re.search(r"\b(is|are) required\b", message):
            raise ValueError(missing(message)) from error
        raise ValueError(in_plain_words(message, [action.dest for action in parser._actions])) from error
