"""Write docs/cli.md from the help texts of the command line."""

from __future__ import annotations

from pathlib import Path

from run_docs import run_dcgst, working_folder

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def reference() -> str:
    """The page: the help text of dcgst and of each verb."""
    from dcgst.cli.app import VERBS

    parts = ["# Command line\n\n`make outputs` generates this page from the help texts."]
    with working_folder():
        parts.append(f"```text\n{run_dcgst(['--help'])}```")
        for verb in VERBS:
            parts.append(f"## dcgst {verb}\n\n```text\n{run_dcgst([verb, '--help'])}```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
