"""``treecaps help``."""

import click


@click.command("help")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(context: click.Context, words: tuple[str, ...]) -> int:
    """Show the help of a command, or of treecaps."""
    shown = context.find_root()
    for word in words:
        group = shown.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{shown.command_path} has no commands", context)
        name, found, _ = group.resolve_command(shown, [word])
        assert found is not None
        shown = click.Context(found, info_name=name, parent=shown, **found.context_settings)
    click.echo(shown.get_help())
    return 0
