"""The command line, run inside the tests' process (quick) or in one of its own."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

from lograb.cli import main


def lograb(*arguments, cwd=None):
    """Run a command; gives returncode, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    command = ["lograb", *map(str, arguments)]
    before = sys.argv, {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    sys.argv = command
    code = 0
    try:
        with contextlib.chdir(cwd or Path.cwd()), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = before[0]
        for number, handler in before[1].items():
            signal.signal(number, handler)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def ok(*arguments, cwd=None):
    """Run a command that must succeed."""
    done = lograb(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def start(*arguments, cwd, **options):
    """Start a command in a process of its own, which Ctrl-C reaches wherever the tests were started."""
    command = [sys.executable, "-c", "from lograb.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, env=os.environ | {"TERM": "xterm"},
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options)


def words(text):
    """Undo line breaks."""
    return " ".join(text.split())
