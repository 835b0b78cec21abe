"""Programs as originals: real ones, started for real."""

import contextlib
import os
import shlex
import signal
import stat
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ectype.errors import OriginalError, OutageError, SettingError
from ectype.original import open_original
from processes import await_end, child_processes

ROWS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 2.0]])

SIGN = """
import csv, sys
for row in csv.DictReader(sys.stdin):
    print("yes" if float(row["x0"]) > 0 else "no")
"""


@pytest.fixture
def program(tmp_path):
    """Write a Python program; gives the command that starts it, without what makes Python start slowly."""

    def write(code, *arguments, name="program.py"):
        path = tmp_path / name
        path.write_text(code)
        return "cmd:" + shlex.join([sys.executable, "-IS", str(path), *arguments])

    return write


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """No process outlives its request, whatever happens, not even as a zombie."""
    before = child_processes()
    yield
    assert child_processes() <= before


# --- what is answered -------------------------------------------------------------------------------------------------


def test_a_program_answers(program):
    spec = program(SIGN)
    box = open_original(spec, request_rows=7, concurrency=2)
    assert box.answer(ROWS).tolist() == ["yes", "no", "yes"]
    assert (box.name, box.request_rows, box.concurrency, box.fingerprint) == (spec, 7, 2, None)
    assert not box.failures


def test_no_shell_and_arguments_with_spaces(program, tmp_path):
    spec = program("import sys\nfor _ in list(sys.stdin)[1:]: print(sys.argv[1:])", "a b", "$HOME; touch x", "*", "'")
    (answer,) = set(open_original(spec).answer(ROWS).tolist())
    assert answer == str(["a b", "$HOME; touch x", "*", "'"])


def test_what_the_program_reads(program, tmp_path):
    seen = tmp_path / "seen.csv"
    box = open_original(program(f"import sys; open({str(seen)!r}, 'w').write(sys.stdin.read()); print('a\\nb\\nc')"))
    box.answer(np.array([[0.1 + 0.2, np.nan], [1e-300, np.inf], [-1.0, 3.0]]))
    assert seen.read_text() == "x0,x1\n0.30000000000000004,\n1e-300,inf\n-1.0,3.0\n"
    frame = pd.DataFrame(
        {
            "a, b": ['say "hi"', "two\nlines", None],
            "n": pd.Series([1, None, 3], dtype="Int64"),
            "yes": [True, False, True],
            "x": np.array([0.1, np.nan, 1e22], np.float32),
            "kind": pd.Categorical(["é", None, "z"]),
        }
    )
    box.answer(frame)
    back = pd.read_csv(seen, dtype={"n": "Int64", "x": np.float32})
    pd.testing.assert_frame_equal(back, frame.astype({"kind": back["kind"].dtype}))


def test_a_missing_value_of_a_single_column_is_not_a_blank_line(program):
    box = open_original(program("import csv, sys; [print(len(row)) for row in list(csv.reader(sys.stdin))[1:]]"))
    assert box.answer(np.array([[np.nan], [1.0]])).tolist() == ["1", "1"]


@pytest.mark.parametrize(
    ("classes", "lines", "labels"),
    [
        (None, "1\\nno\\né x ", ["1", "no", "é x "]),
        (["1", "2"], "1\\n2\\n1", ["1", "2", "1"]),
        ([1, 2], "1\\n2.0\\n +1", [1, 2, 1]),
        ([0, 2**62 + 1], f"0\\n{2**62 + 1}\\n0", [0, 2**62 + 1, 0]),
        ([0.5, 1.0], "0.5\\n1\\n1e0", [0.5, 1.0, 1.0]),
        ([True, False], "true\\nFalse\\n1", [True, False, True]),
        (["a", "b"], "a\\r\\nb\\r\\na\\r", ["a", "b", "a"]),
    ],
)
def test_labels_have_the_type_of_the_classes(program, classes, lines, labels):
    box = open_original(program(f"import sys; sys.stdin.read(); print('{lines}')"), classes)
    found = box.answer(ROWS).tolist()
    assert found == labels
    assert type(found[0]) is type(labels[0])


def test_scores_are_read_as_told(program):
    spec = program("print('0.1,0.9\\n1, 0\\n-1e-3,2')", name="scores.py")
    assert open_original(spec, ["a", "b"], decode="argmax").answer(ROWS).tolist() == ["b", "a", "b"]
    spec = program("print('0.7\\n0.69\\n1')")
    assert open_original(spec, decode="threshold", threshold=0.7).answer(ROWS).tolist() == [1, 0, 1]


def test_much_goes_both_ways_at_once(program):
    """A program that prints while it reads, more than pipes hold, to both of its outputs."""
    echo = "import sys\nnext(sys.stdin)\nfor line in sys.stdin: print(line, file=sys.stderr); print(100 * line[-2])"
    answers = open_original(program(echo)).answer(np.arange(20_000)[:, None])
    assert answers.tolist() == [100 * str(row % 10) for row in range(20_000)]


def test_a_program_that_does_not_read_what_it_is_sent(program):
    box = open_original(program("for _ in range(5_000): print('same')"))
    assert set(box.answer(np.zeros((5_000, 50))).tolist()) == {"same"}


def test_several_requests_at_once(program):
    box = open_original(program(SIGN), concurrency=4)
    found = []
    asking = [threading.Thread(target=lambda: found.append(box.answer(ROWS).tolist())) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert found == 4 * [["yes", "no", "yes"]]


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "classes", "message", "cause"),
    [
        ("print('a\\nb')", None, "expected 3 lines, one for each row, found 2", "output"),
        ("print('a\\nb\\nc\\nd')", None, "expected 3 lines, one for each row, found 4", "output"),
        ("pass", None, "expected 3 lines, one for each row, found 0", "output"),
        ("print('a\\n\\nc')", None, "expected a label in line 2, found ''", "output"),
        ("print('1\\n2\\nthree')", [1, 2], "expected a number in line 3, found 'three'", "output"),
        ("print('1\\n2.5\\n1')", [1, 2], "expected a whole number in line 2, found '2.5'", "output"),
        ("print('1\\ninf\\n1')", [1, 2], "expected a whole number in line 2, found 'inf'", "output"),
        ("print('1\\n1e30\\n1')", [1, 2], "expected a whole number in line 2, found '1e30'", "output"),
        ("print('1\\n1_0\\n1')", [1, 2], "expected a number in line 2, found '1_0'", "output"),
        ("print('yes\\nno\\nyes')", [True, False], "expected true, false, 1 or 0 in line 1, found 'yes'", "output"),
        ("print('nan\\n1\\n1')", [1.0, 2.0], "expected labels, found NaN in row 0", None),
        ("import sys; sys.stdout.buffer.write(b'a\\n\\xff\\nb')", None, "UTF-8, found byte 0xff in line 2", "output"),
        ("import sys; print('a\\nb\\nc'); sys.exit(3)", None, "expected exit code 0, found exit code 3", "exit"),
        ("import os; os.kill(os.getpid(), 9)", None, "expected exit code 0, found SIGKILL", "exit"),
        ("import sys; sys.exit('one\\ntwo\\nbad row')", None, "found exit code 1: one two bad row", "exit"),
        ("raise RuntimeError('boom')", None, "RuntimeError: boom", "exit"),
    ],
)
def test_answers_that_are_none(program, code, classes, message, cause):
    box = open_original(program(code), classes)
    with pytest.raises(OriginalError) as caught:
        box.answer(ROWS)
    assert message in str(caught.value)
    assert box.failures == ({} if cause is None else {cause: 1})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1,2\\n1,2\\n1_0,2", "expected numbers separated by commas"),
        ("1,2\\n1,2,3\\n1,2", "expected as many scores in every line, found 2 and 3"),
        ("1,2\\n1,x\\n1,2", "expected numbers separated by commas in line 2, found '1,x'"),
        ("1,2\\n\\n1,2", "expected numbers separated by commas in line 2, found ''"),
        ("1\\n2\\n3", "expected at least 2 scores, in every row, found an array of shape (3, 1)"),
    ],
)
def test_scores_that_are_none(program, lines, message):
    with pytest.raises(OriginalError) as caught:
        open_original(program(f"print('{lines}')"), decode="argmax").answer(ROWS)
    assert message in str(caught.value)


def test_the_last_words_of_a_talkative_program(program):
    box = open_original(program("import sys\nfor i in range(10**4): print('line', i, file=sys.stderr)\nsys.exit(2)"))
    with pytest.raises(OriginalError) as caught:
        box.answer(ROWS)
    assert "found exit code 2: line 9995 line 9996 line 9997 line 9998 line 9999" in str(caught.value)


def test_a_program_that_prints_forever_is_stopped():
    with pytest.raises(OriginalError, match="expected a line for each row, found more than 67108864 bytes"):
        open_original("cmd:yes").answer(ROWS)


def test_a_program_that_takes_too_long_ends_with_all_it_started(tmp_path):
    pid = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {shlex.quote(str(pid))}; wait"
    box = open_original(f"cmd:sh -c {shlex.quote(script)}", timeout=1)
    with pytest.raises(OriginalError, match="expected an answer within 1 s, found none; raise the limit"):
        box.answer(ROWS)
    assert box.failures == {"timeout": 1}
    await_end(int(pid.read_text()))


def test_a_program_that_closes_its_output_and_goes_on(program):
    code = "import os, time; print('a\\nb\\nc', flush=True); os.closerange(0, 3); time.sleep(600)"
    with pytest.raises(OriginalError, match=r"within 0\.5 s"):
        open_original(program(code), timeout=0.5).answer(ROWS)


def test_an_interrupted_request_ends_the_program(program):
    def interrupt(*_):
        raise KeyboardInterrupt

    # It waits for its first row: before that, its process may not be ours to end yet.
    code = f"import os, sys, time; sys.stdin.readline(); os.kill({os.getpid()}, {int(signal.SIGUSR1)}); time.sleep(600)"
    box = open_original(program(code))
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            box.answer(ROWS)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_program_that_is_gone_when_it_is_needed(tmp_path):
    path = tmp_path / "gone"
    path.write_text("not a program")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    box = open_original(f"cmd:{path}")
    with pytest.raises(OutageError, match=r"a program that can be started, found .*Exec format error"):
        box.answer(ROWS)
    path.unlink()
    with pytest.raises(OutageError, match=r"a program that can be started, found .*No such file"):
        box.answer(ROWS)
    assert box.failures == {"start": 2}


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("cmd:", {}, "original: expected cmd:PROGRAM ARGUMENTS, found 'cmd:'"),
        ("cmd:   ", {}, "original: expected cmd:PROGRAM ARGUMENTS"),
        ("cmd:cat 'open", {}, "quoted as for a shell, found cmd:cat 'open: No closing quotation"),
        ("cmd:cat \0", {}, "original: expected cmd:PROGRAM ARGUMENTS"),
        ("cmd:no-such-program-here", {}, "a program that can be run, found 'no-such-program-here'"),
        ("cmd:/etc/passwd", {}, "a program that can be run, found '/etc/passwd'; there is none"),
        ("cmd:/tmp", {}, "a program that can be run"),
        ("cmd:cat", {"request_rows": 0}, "request_rows: expected a whole number of at least 1"),
        ("cmd:cat", {"concurrency": 1.5}, "concurrency: expected a whole number of at least 1"),
        ("cmd:cat", {"timeout": -1}, "timeout: expected a number of seconds above 0"),
        ("cmd:cat", {"decode": "softmax"}, "decode: expected one of"),
        ("cmd:cat", {"classes": [1, "a"]}, "classes: expected labels of one type"),
        ("cmd:cat", {"decode": "threshold", "classes": [1, 2, 3]}, "classes: expected two labels"),
        ("cmd:cat", {"output": "label"}, "output: expected one of decode, threshold, request_rows,"),
    ],
)
def test_commands_that_are_refused(spec, options, message):
    with pytest.raises(SettingError) as caught:
        open_original(spec, **options)
    assert message in str(caught.value)


# --- anything at all --------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.binary(max_size=40),
    st.sampled_from([None, [1, 2], [0.5, 1.5], [True, False], ["a", "b"]]),
    st.sampled_from(["label", "argmax", "threshold"]),
)
def test_any_output_is_labels_or_an_error(tmp_path_factory, output, classes, decode):
    path = tmp_path_factory.getbasetemp() / f"output-{os.getpid()}"
    path.write_bytes(output)
    box = open_original(f"cmd:cat {shlex.quote(str(path))}", classes, decode=decode)
    with contextlib.suppress(OriginalError):
        assert len(box.answer(ROWS[:2])) == 2
