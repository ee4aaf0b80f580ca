"""The application: help, verbs, global options and exit codes."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from dcgst.cli.app import VERBS, function_of
from dcgst.memory import parse_size
from dcgst.version import VERSION
from tests.cli.helpers import dcgst


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_help_lists_all_verbs_and_does_not_import_torch():
    done = run_python(
        "import sys; sys.argv = ['dcgst', '--help']\n"
        "from dcgst.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as stopped:\n    print('exit', stopped.code)\n"
        "print('imported', *(m for m in ('torch', 'scipy', 'sklearn') if m in sys.modules))"
    )
    assert done.stderr == ""
    *shown, code, imported = done.stdout.splitlines()
    assert (code, imported.split()) == ("exit 0", ["imported"])
    listed = {line.split()[0] for line in shown if line.startswith("  ")}
    assert set(VERBS) < listed


def test_the_library_works_without_the_packages_of_the_command_line():
    done = run_python(
        "import sys; sys.modules['typer'] = sys.modules['rich'] = None\n"
        "import dcgst.bench.protocol, dcgst.insight, dcgst.testing; print('fine')"
    )
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_verbs_shows_the_first_line_of_each_docstring(verb):
    command = function_of(verb)
    assert (inspect.getdoc(command) or "").splitlines()[0] == VERBS[verb]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_help_text(verb):
    done = dcgst(verb, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: dcgst {verb}")
    assert VERBS[verb] in done.words


def test_without_a_verb_the_help_is_shown():
    assert all(verb in dcgst().words for verb in VERBS)


def test_the_version_is_shown():
    done = dcgst("--version")
    assert (done.code, done.out) == (0, f"dcgst {VERSION}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fitt"], "No such command 'fitt'"),
        (["methods", "--jsn"], "No such option"),
        (["bench", "--rate", "much"], "Invalid value for '--rate'"),
        (["fit"], "Missing argument"),
        (["methods", "gnc"], "Error: unknown method 'gnc'; did you mean 'gcn'?"),
        (
            ["--import", "no_such_module", "methods"],
            "Error: --import 'no_such_module' failed: ModuleNotFoundError: No module",
        ),
    ],
)
def test_invalid_usage_exits_with_2_and_without_a_traceback(arguments, message):
    done = dcgst(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.words
    assert "Traceback" not in done.err


def test_debug_shows_the_traceback():
    done = dcgst("--debug", "methods", "gnc")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.endswith("srgnn, srgnn_st, st\n"), "the message comes last"


def test_an_unexpected_error_exits_with_1(monkeypatch):
    def fail():
        raise RuntimeError("boom")

    monkeypatch.setattr("dcgst.cli.bench.datasets_command", fail)
    done = dcgst("datasets")
    assert done.code == 1
    assert done.err == "Failed: RuntimeError: boom (use --debug for a traceback)\n"
    assert "in fail" in dcgst("--debug", "datasets").err


def test_an_interruption_exits_with_130(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("dcgst.cli.bench.datasets_command", interrupt)
    done = dcgst("datasets")
    assert done.code == 130
    assert "Traceback" not in done.err


def test_a_module_in_the_current_folder_is_imported_first(tmp_path, monkeypatch):
    (tmp_path / "imported_first.py").write_text("print('imported')\n")
    monkeypatch.chdir(tmp_path)
    done = dcgst("--import", "imported_first", "datasets", "--json")
    sys.modules.pop("imported_first")
    assert done.code == 0
    assert done.out.startswith('imported\n{"name": "cora"')


def test_a_memory_limit_is_honored(tables):
    fit = ("fit", tables / "nodes.csv", tables / "edges.csv", "--label", "kind", "-o", "never")
    done = subprocess.run(
        [sys.executable, "-m", "dcgst", "--memory", "400MB", *map(str, fit)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tables,
    )
    assert done.returncode == 2, done.stderr
    assert "memory" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tables / "never").exists()
    assert dcgst("--memory", "much", *fit).code == 2


def test_an_interrupt_ends_with_one_line(tables):
    code = (
        "import os, signal, sys, threading; from dcgst.cli import main; import dcgst.cli.bench;"
        # A process that a shell started in the background ignores SIGINT, and so do its children.
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start();"
        "dcgst.cli.bench.console.print = lambda *_: __import__('time').sleep(9);"
        "sys.argv = ['dcgst', 'datasets']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize("module", ["", ".x", "broken_module"])
def test_modules_that_cannot_be_imported_are_named(tmp_path, monkeypatch, module):
    (tmp_path / "broken_module.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    done = dcgst("--import", module, "datasets")
    assert (done.code, f"--import {module!r} failed" in done.err) == (2, True)


def test_a_huge_memory_limit_is_no_limit():
    assert parse_size("9" * 400) == parse_size("100000000000000000000TB") == 2**60


def test_a_deleted_working_folder_is_no_problem(tmp_path):
    code = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]);"
        "sys.argv = ['dcgst', '--version']; from dcgst.cli import main; main()"
    )
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "gone")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
