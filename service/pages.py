"""Lists in pages, newest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

Item = TypeVar("Item")
Row = TypeVar("Row")


class PageRequest(BaseModel):
    """Which page is asked for."""

    limit: int
    cursor: str | None


class Page(BaseModel, Generic[Item]):
    """One page of a list; `next_cursor` is null on the last one."""

    items: list[Item]
    next_cursor: str | None = None


def _page_request(
    limit: Annotated[int, Query(ge=1, le=200, description="Most items of the answer")] = 50,
    cursor: Annotated[
        str | None, Query(max_length=100, description="`next_cursor` of the page before")
    ] = None,
) -> PageRequest:
    return PageRequest(limit=limit, cursor=cursor)


PageDep = Annotated[PageRequest, Depends(_page_request)]


def fetch_page(
    session: Session,
    query: Select[Row],
    id_column: InstrumentedAttribute[str],
    page: PageRequest,
) -> tuple[list[Row], str | None]:
    """Rows of a page and the cursor of the next one; ids sort by creation time."""
    if page.cursor is not None:
        query = query.where(id_column < page.cursor)
    # One more than asked for tells whether there is a next page.
    rows = list(session.scalars(query.order_by(id_column.desc()).limit(page.limit + 1)))
    if len(rows) <= page.limit:
        return rows, None
    rows.pop()
    return rows, str(getattr(rows[-1], id_column.key))


def page_of(
    rows: tuple[list[Row], str | None], view: Callable[[Sequence[Row]], list[Item]]
) -> Page[Item]:
    """A page of views, made from all rows at once so that a view can fetch in bulk."""
    return Page(items=view(rows[0]), next_cursor=rows[1])
