"""Parsers behind one interface, each turning a program into a ``Tree``."""

from typing import TYPE_CHECKING, Literal, get_args

from treecaps.errors import UsageError

if TYPE_CHECKING:
    from treecaps.syntax.frontends.base import Frontend

FrontendName = Literal["tree-sitter", "ast", "srcml"]
FRONTENDS: tuple[FrontendName, ...] = get_args(FrontendName)


def get_frontend(name: str = "tree-sitter", *, comments: bool = False) -> "Frontend":
    """Return the front end called ``name``; its parser is loaded only now."""
    if name == "tree-sitter":
        from treecaps.syntax.frontends.tree_sitter import TreeSitterFrontend

        return TreeSitterFrontend(comments=comments)
    if name == "ast":
        from treecaps.syntax.frontends.python_ast import AstFrontend

        return AstFrontend(comments=comments)
    if name == "srcml":
        from treecaps.syntax.frontends.srcml import SrcmlFrontend

        return SrcmlFrontend(comments=comments)
    raise UsageError(f"unknown front end {name!r}; known: {', '.join(FRONTENDS)}")
