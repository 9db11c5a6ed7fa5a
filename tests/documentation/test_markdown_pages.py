"""The reader of the pages: what it finds, and that it overlooks nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_pages import commands, links, parse_blocks

PAGE = """\
# Title
[a page](other.md#part) and [the web](https://example.org/x.md) ![a picture](figures/a.png "title")

```python
x = 1
```

<!-- no-run: needs a large file -->

```python
y = 2
```

- in a list:
  ```bash
  # a comment
  make circles   # then wait
  .venv/bin/python -m inference.svi --dataset circles \\
      --seed 3
  makeinfo x
  python -m pytest
  ```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_blocks_keep_order_language_line_and_reason(page: Path) -> None:
    found = parse_blocks(page)
    assert [(b.language, b.line, b.no_run) for b in found] == [
        ("python", 4, None),
        ("python", 10, "needs a large file"),
        ("bash", 15, None),
    ]
    assert found[0].text == "x = 1\n"
    assert found[2].text.startswith("# a comment\nmake circles")


def test_commands_are_joined_and_lose_their_comments(page: Path) -> None:
    lines = [" ".join(command.words) for command in commands(parse_blocks(page)[2])]
    assert lines == ["make circles", ".venv/bin/python -m inference.svi --dataset circles --seed 3"]


def test_links_leave_out_the_web_and_anchors(page: Path) -> None:
    assert links(page) == ["other.md", "figures/a.png"]


def test_an_open_fence_is_refused(page: Path) -> None:
    page.write_text("text\n```python\nx = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"page.md:2: expected a closing fence"):
        parse_blocks(page)
