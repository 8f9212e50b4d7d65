"""Kinds of work that Python does besides operators: each is recognized by what a line calls, and gets its own fix."""

import pytest

from tests.rules import case_batches, case_contents, case_optimizer, case_ordinary
from tests.rules.test_host_and_trust import one, pausing
from tests.traces import Story, samples
from torchwhy.trace.meaning.host_work import HOST_WORK

LINE = "train.py(30): step |"
PLAIN = "x = self.work(y)"

KNOWN = [  # what the kind shows, the line, and the frames below it
    ("lock", "with self.lock:", ()),
    ("plot", "figure.savefig(path)", ("PIL/ImageFile.py(699): _encode_tile", "matplotlib/figure.py(3): savefig")),
    ("all objects", "things = len(gc.get_objects())", ()),
    ("as text", "key = str(board)", ("numpy/_core/arrayprint.py(917): recurser",)),
    (".npz", "x = self.file['x'][i]", ("zipfile.py(1031): _read1", "numpy/lib/_npyio_impl.py(257): __getitem__")),
    ("checksum", "digest.update(value.numpy().tobytes())", ()),
    ("checksum", "name = hashlib.sha256(data).hexdigest()", ()),
    ("regular expression", 'return NAMES.sub("NAME", text)', ()),
    ("regular expression", "found = re.findall(pattern, text)", ()),
    ("read from text", 'x = np.array([int(p) for p in text.split(" ")], dtype=np.uint8)', ()),
    ("read from text", "x = list(map(float, line.split()))", ()),
    ("whole table", 'x = self.table[self.table["who"] == c]["what"]', ("pandas/core/frame.py(4): __getitem__",)),
    ("whole table", "x = table.loc[table.customer == c]", ()),
    ("single rows", "x = table.iloc[i]", ("pandas/core/indexing.py(1170): __getitem__",)),
    ("joined to itself", "self.x = torch.cat((self.x, y))", ()),
    ("search tree", "tree = cKDTree(self.reference)", ()),
    ("draw with weights", "i = np.random.choice(n, 64, p=chances)", ()),
    ("draw with weights", "i = random.choices(rows, weights=w, k=64)", ()),
    ("permutation", "i = np.random.choice(n, 64, replace=False)", ()),
    ("video", "for frame in container.decode(stream):", ()),
    ("Pillow", "x = image.resize((96, 96))", ("PIL/ImageFile.py(425): load", "PIL/Image.py(2420): resize")),
    ("scipy.ndimage", "x = ndimage.rotate(v, a)", ("scipy/ndimage/_interpolation.py(1030): rotate",)),
    ("audio", "x = librosa.resample(x)", ("soxr/__init__.py(222): resample", "librosa/core/audio.py(9): resample")),
    ("tokenizer", "x = self.tokenizer(t)", ("transformers/tokenization_utils_fast.py(5): _batch_encode_plus",)),
    ("networkx", "x = nx.diameter(g)", ("networkx/algorithms/distance_measures.py(8): diameter",)),
    ("other programs", "subprocess.run(command)", ("subprocess.py(550): run",)),
    ("another computer", "requests.post(url)", ("ssl.py(9): read", "requests/api.py(5): post")),
    ("sleep", "time.sleep(0.01)", ()),
    ("first item", "x = waiting.pop(0)", ()),
    ("torch.tensor", "x = torch.tensor(rows)", ()),
    ("unpacked", "x = file.read()", ("gzip.py(4): read",)),
    ("saved", "torch.save(x, path)", ("torch/serialization.py(9): save",)),
    ("read or decoded", "x = json.load(file)", ("json/__init__.py(293): load",)),
    ("read or decoded", "x = cv2.imread(path)", ()),
    ("Python's own", "x = scores.tolist()", ()),
    ("log", "print(loss)", ()),
    ("objects being copied", "x = copy.deepcopy(y)", ("copy.py(128): deepcopy",)),
    ("search through a list", "x = words.index(word)", ()),
    ("NumPy making an array", "x = np.array(rows)", ()),
    ("going through items", "x = sum(y for y in z)", ()),
]  # fmt: skip

UNKNOWN = [
    (PLAIN, ()),
    ("x = F.match(y)", ()),
    ("x = TEXT.split(y)", ()),
    ("x = self.tree.query(y)", ("scipy/spatial/_kdtree.py(9): query",)),
    ("self.totals.update(y)", ()),
    ("x = table[other[key] == c]", ()),
    ("x = container.decode(text)", ()),
    ("x = rng.choice(n, 64)", ()),
    ("x = waiting.pop()", ()),
    ("x = zipfile_of[y]", ()),
    ("x = y.multinomial(4)", ()),
    ("x = self.resize(y)", ("PIL/Image.py(9): size",)),
    ("x = fit(y)", ("scipy/optimize/_minimize.py(9): minimize",)),
]


def kind_named(part):
    (found,) = [kind for kind in HOST_WORK if part in kind.shows]
    return found


def test_every_kind_of_work_has_an_example():
    assert {kind.shows for kind in HOST_WORK} == {kind_named(part).shows for part, _, _ in KNOWN}


@pytest.mark.parametrize(("part", "line", "below"), KNOWN)
def test_a_kind_of_work_is_named_with_its_fix_in_the_loop_and_in_batches(part, line, below):
    kind = kind_named(part)
    looping = one(pausing(*below, LINE + line), "between-steps-gap")
    assert looping.fix == kind.fix
    assert f"100% of the samples there show {kind.shows}" in looping.cause
    assert kind.shows in looping.title
    loading = one(case_batches.in_own_process(us=600, frame=LINE + line, below=below), "dataloader-wait")
    assert (loading.fix == (kind.batches or kind.fix)) == kind.slow


@pytest.mark.parametrize(("line", "below"), UNKNOWN)
def test_of_other_work_the_called_function_is_named_and_the_advice_is_general(line, below):
    looping = one(pausing(*below, LINE + line), "between-steps-gap")
    loading = one(case_batches.in_own_process(us=600, frame=LINE + line, below=below), "dataloader-wait")
    for finding in (looping, loading):
        assert finding.fix.startswith("Make that line cheaper")
        assert "the samples there show" not in finding.cause
        assert all(frame.rpartition("/")[2] in finding.cause for frame in below)


@pytest.mark.parametrize("stacks", [("torch/__init__.py(9): is_tensor",), ()])
def test_what_a_loop_over_all_objects_does_counts_for_the_loop(stacks):
    walk = ["train.py(8): live |for thing in gc.get_objects():", "train.py(20): main |live()"]
    body = [*stacks, "train.py(9): live |if is_tensor(thing):", "train.py(20): main |live()"]
    finding = one(steps_with([walk, *[body] * 9]), "between-steps-gap")
    assert "gc.get_objects() returns every object" in finding.fix


@pytest.mark.parametrize(
    ("outside", "named"), [("train.py(12): main |loss()", True), ("train.py(20): main |show()", False)]
)
def test_where_no_line_has_half_of_the_time_the_call_around_is_named(outside, named):
    """Unless that runs the rest of the program, too."""
    inner = [[f"{part}.py(1): f", f"train.py({k}): show |{part}()", "train.py(20): main |show()"] for k, part in
             enumerate(["a", "b", "c", "d"])]  # fmt: skip
    finding = one(steps_with(inner, outside), "between-steps-gap")
    assert ("are in what train.py(20): main calls: show()" in finding.cause) == named


def steps_with(inside, outside="train.py(12): main |loss()"):
    """Steps of 10 ms with operators for the first 3 ms; samples show `inside` after that, in turn."""
    story, places = Story(gpu=None), []
    for at in story.steps(6, 10_000):
        for k in range(30):
            story.op("aten::mm", at + 100 * k, 98)
        story.op("aten::mm", at + 9990, 9)
        places += [[outside]] * 60 + [inside[k % len(inside)] for k in range(140)]
    return samples(story, places, 50)


@pytest.mark.parametrize("kind", ["MultiProcessing", "SingleProcess"])
@pytest.mark.parametrize("takes_rows", [False, True])
def test_rows_of_tensors_in_memory_are_to_be_indexed_as_a_batch_not_by_more_workers(kind, takes_rows):
    story, part = case_batches.loop(300, kind, gpu=False), {"seconds": 1.0, "lines": []}
    run = {"seconds": 9.0, "steps": 0, "optimizer": True, "later_steps": 90, "start_up": part, "outside": part}
    story.top["torchwhy_run_times"] = run | {"takes_rows": takes_rows}
    finding = one(story, "dataloader-wait")
    assert ("TensorDataset" in finding.cause) == ("BatchSampler" in finding.fix) == takes_rows
    assert ("More workers" in finding.fix) == (kind == "MultiProcessing" and not takes_rows)


@pytest.mark.parametrize("groups", [16, 30])
def test_the_optimizers_time_for_all_groups_but_two_is_at_stake(groups):
    finding = one(case_optimizer.in_groups(groups), "parameter-groups")
    assert f"updates {groups} groups of one parameter each" in finding.title
    assert finding.time_us == pytest.approx(4 * (20 + 16 * groups) * (1 - 2 / groups), rel=0.01)
    assert 'AdamW([{"params"' in finding.fix


def test_a_check_counts_from_its_test_to_its_answer():
    finding = one(case_ordinary.checks(per_step=6, us=30), "value-checks")
    assert "6 times a step" in finding.title
    assert finding.time_us == pytest.approx(4 * 6 * 92)


@pytest.mark.parametrize("part", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("slow_us", [2, 10, 100])
def test_subnormal_numbers_cost_what_the_calls_with_them_take_longer(part, slow_us):
    """Calls take 1 us without them. The first of the calls with them, which were run again, take half as long."""
    calls = 1000
    saved, whole = part * calls * (slow_us - 1), part * calls * slow_us + (1 - part) * calls
    noted = {"looks": 64, "subnormal": 40, "reruns": 8, "faster": 8, "flushed_us": 8.0}
    noted |= {"plain_us": 8.0 + 4 * slow_us, "floored_us": 9.0, "all_us": whole}
    noted |= {"subnormal_us": part * calls * slow_us, "subnormal_calls": round(part * calls)}
    story = case_contents.tried(
        "aten::mul", case_contents.PRODUCT, case_contents.FORWARD, case_contents.CHANGES, **noted
    )
    finding = one(story, "subnormal-numbers")
    assert finding.time_us == pytest.approx(5 * 300 * saved / whole)


@pytest.mark.parametrize(("operators", "us"), [(40, 8000), (800, 8000), (800, 80_000)])
def test_a_batch_that_takes_hundreds_of_operators_is_to_be_made_of_numbers(operators, us):
    many = operators == 800 and us == 8000  # else there is time for other work between them
    story, places = Story(gpu=None), []
    line = LINE + "matrix[source, target] = length"
    for at in story.steps(4, us + 2000):
        story.note(case_batches.LOADER.format("SingleProcess"), at + 10, us)
        for k in range(operators):
            story.op("aten::fill_", at + 20 + 9 * k, 2)
        story.op("aten::mm", at + us + 1000, 900)
        loader = ["torch/utils/data/dataloader.py(700): __next__", "train.py(20): main |for batch in loader:"]
        places += [[line, *loader]] * 160 + [["train.py(22): main |loss()"]] * 40
    finding = one(samples(story, places, (us + 2000) // 200), "dataloader-wait")
    assert (f"with {operators} operators of PyTorch" in finding.cause) == many
    assert finding.fix.startswith("Compute with Python's numbers" if many else "Make that line cheaper")


@pytest.mark.parametrize(("below", "named"), [("matplotlib/figure.py(3): savefig", True), ("own.py(3): work", False)])
def test_garbage_that_a_known_kind_of_work_makes_goes_with_it(below, named):
    story, places = Story(gpu=None), []
    for at in story.steps(4, 10_000):
        story.op("aten::mm", at + 100, 2000)
        story.note("Python GC", at + 4000, 1500)
        story.note("Python GC", at + 6000, 1500)
        story.op("aten::mm", at + 8000, 1000)
        places += [[below, LINE + "show()"]] * 200
    finding = one(samples(story, places, 50), "gc-pause")
    assert ("Draw every N steps" in finding.fix) == named
    assert "gc.freeze()" in finding.fix
