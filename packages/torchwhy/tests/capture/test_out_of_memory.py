"""A program that runs out of memory ends as without us, and what held the memory is written before."""

import re

import pytest

from torchwhy import load_snapshot


@pytest.mark.parametrize("caught", [0, 1])
def test_a_snapshot_is_written_before_the_error_ends_the_program(profile_program, caught):
    ran = profile_program("--on-oom", program="out_of_gpu_memory.py", arguments=[caught], loaded=False)
    assert ran.status == 1
    assert ran.out == "['max_entries', 'stacks']\n" + "caught 0\n" * caught
    assert "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GB." in ran.report
    snapshot = ran.folder.with_name("run.oom.pickle")
    assert load_snapshot(snapshot).devices[0].holders[0].line == "~/train.py(3): grow"
    told = " ".join(ran.report.split())
    assert "GPU 0 ran out of memory: 2.00 GB requested, 1.00 MB of 80.0 GB free" in told
    assert f"torchwhy memory {snapshot} shows who holds it" in told
    assert not list(snapshot.parent.glob(".*partial"))


@pytest.mark.many
def test_a_program_that_goes_on_ends_well_and_has_its_snapshot(profile_program):
    ran = profile_program("--on-oom", program="out_of_gpu_memory.py", arguments=[2], loaded=False)
    assert (ran.status, ran.out.splitlines()[1:]) == (0, ["caught 0", "caught 1"])
    assert ran.folder.with_name("run.oom.pickle").is_file()


@pytest.mark.many
def test_a_snapshot_that_cannot_be_taken_leaves_the_error_alone(profile_program):
    ran = profile_program("--on-oom", program="out_of_gpu_memory.py", arguments=[0, "broken"], loaded=False)
    assert ran.status == 1
    assert "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GB." in ran.report
    assert "no snapshot was written: FileNotFoundError" in ran.report
    assert not ran.folder.with_name("run.oom.pickle").exists()


@pytest.mark.many
def test_without_the_option_nothing_watches(profile_program):
    ran = profile_program(program="out_of_gpu_memory.py", arguments=[0], loaded=False)
    assert (ran.status, ran.out) == (1, "[]\n")
    assert not ran.folder.with_name("run.oom.pickle").exists()


def test_of_the_host_the_request_and_its_line_are_told(profile_program, run_plainly):
    ran, plain = profile_program("--on-oom", program="out_of_host_memory.py"), run_plainly("out_of_host_memory.py")
    assert (ran.status, ran.out) == (plain.returncode, plain.stdout) == (1, "")
    last = plain.stderr.splitlines()[-1]
    assert last in ran.report
    told = " ".join(ran.report.split())
    assert re.search(
        r"the host ran out of memory: 4,?611,?686 TB requested at out_of_host_memory\.py\(5\): grow; "
        r"the process had [\d.]+ [MG]B at most",
        told,
    )
