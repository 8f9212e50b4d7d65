"""What is wrong with a wheel is found: small libraries for every platform, right ones and such with one fault each."""

import json
import subprocess
import zipfile
from pathlib import Path

import pytest
import ziglang

from check_release import missing
from check_wheel import complaints, exported_names
from sbom import bill
from wheels import PACKAGES, PLATFORMS, ROOT, Platform, name_and_version

ZIG = Path(ziglang.__file__).parent / "zig"
START = "int DllMainCRTStartup(void* a, unsigned b, void* c) { return 1; }"  # Windows asks for one
ANSWER = "int torchwhy_answer(void) { return 42; }"
PUBLIC = '__attribute__((visibility("default"))) '
BY_TAG = {platform.tag: platform for platform in PLATFORMS}
LINUX, MUSL, WINDOWS = "manylinux_2_17_x86_64.manylinux2014_x86_64", "musllinux_1_2_x86_64", "win_amd64"


def file_name(platform: Platform, name: str) -> str:
    return {"Linux": f"lib{name}.so", "Darwin": f"lib{name}.dylib", "Windows": f"{name}.dll"}[platform.system]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A function that compiles C for a platform, with flags, and returns the library's bytes."""
    made = {}

    def compiled(tag: str, code: str = ANSWER, *flags: str, target: str = "") -> bytes:
        key = (tag, code, *flags, target)
        if key not in made:
            folder = tmp_path_factory.mktemp("library")
            platform = BY_TAG[tag]
            code = f"{PUBLIC}{code}\n"
            if platform.system == "Windows":
                code = f"{START}\n{code}".replace(PUBLIC, "__declspec(dllexport) ")
            (folder / "code.c").write_text(code)
            out = folder / file_name(platform, "torchwhy_trace")
            options = ["-target", target or platform.target, "-shared", "-O1", "-s", "-fno-stack-protector"]
            command = [ZIG, "cc", *options, "code.c", "-o", out, *(flags or ("-nostdlib",))]
            done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            made[key] = out.read_bytes()
        return made[key]

    return compiled


def wheel(folder: Path, tag: str, content: bytes | None, *others: str, package="torchwhy", version="1.2.3") -> Path:
    path = folder / f"{package}-{version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{package}/__init__.py", "")
        archive.writestr(f"{package}-{version}.dist-info/sboms/{package}.cdx.json", bill(package, version, "Linux"))
        if content is not None:
            archive.writestr(f"{package}/{file_name(BY_TAG[tag], 'torchwhy_trace')}", content)
        for other in others:
            archive.writestr(other, "")
    return path


@pytest.mark.parametrize("tag", BY_TAG)
def test_a_right_library_of_each_platform_passes(tag, tmp_path, library):
    path = wheel(tmp_path, tag, library(tag))
    assert complaints(path) == []
    assert exported_names(path) == {"torchwhy_answer"}


@pytest.mark.parametrize("tag", BY_TAG)
def test_a_library_for_another_processor_is_found(tag, tmp_path, library):
    system = BY_TAG[tag].system
    (other,) = [one.tag for one in PLATFORMS if one.system == system and one.tag != tag and one.tag[:3] == tag[:3]]
    (found,) = complaints(wheel(tmp_path, tag, library(other)))
    assert found.startswith("is for ")


@pytest.mark.parametrize("tag", BY_TAG)
def test_names_beside_the_interface_are_found(tag, tmp_path, library):
    code = f"{ANSWER} {PUBLIC}int helper(void) {{ return 1; }}"
    (found,) = complaints(wheel(tmp_path, tag, library(tag, code)))
    assert found == "gives out 1 names that are not the interface's: helper"


FAULTS = {
    "newer glibc": (
        LINUX,
        "int getentropy(void*, unsigned long); {}",
        ("-lc",),
        "x86_64-linux-gnu.2.34",
        "needs glibc (2, 2",
    ),
    "glibc under musl": (MUSL, "int puts(const char*); {}", ("-lc",), "x86_64-linux-gnu.2.17", "needs glibc"),
    "run path": (LINUX, "{}", ("-nostdlib", "-Wl,-rpath,/opt/lib"), "", "has a run path"),
    "path of the machine": (LINUX, f'const char* torchwhy_where = "{ROOT}"; {{}}', ("-nostdlib",), "", "holds a path"),
    "newer macOS": ("macosx_11_0_arm64", "{}", ("-nostdlib",), "aarch64-macos.14.0", "needs macOS 14.0"),
    "a foreign DLL": (WINDOWS, "{}", ("-nostdlib", "-luser32"), "", "needs user32.dll"),
}
CALLS = {
    "newer glibc": "int torchwhy_more(void* p) { return getentropy(p, 8); }",
    "glibc under musl": 'int torchwhy_more(void) { return puts(""); }',
    "a foreign DLL": "int __stdcall MessageBeep(unsigned); int torchwhy_more(void) { return MessageBeep(0); }",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault, tmp_path, library):
    tag, code, flags, target, expected = FAULTS[fault]
    code = code.replace("{}", f"{CALLS.get(fault, '')} {PUBLIC}{ANSWER}")
    found = complaints(wheel(tmp_path, tag, library(tag, code, *flags, target=target)))
    assert any(text.startswith(expected) for text in found), found


def test_an_executable_stack_is_found(tmp_path, library):
    content = bytearray(library(LINUX))
    stack = content.index((0x6474E551).to_bytes(4, "little"))  # PT_GNU_STACK; its flags follow
    content[stack + 4] |= 1
    assert complaints(wheel(tmp_path, LINUX, bytes(content))) == ["asks for an executable stack"]


def test_a_library_missing_doubled_or_cut_is_found(tmp_path, library):
    whole = library(LINUX)
    (found,) = complaints(wheel(tmp_path, LINUX, None))
    assert found == "has 0 native libraries, 1 is right: []"
    (found,) = complaints(wheel(tmp_path, LINUX, whole, "torchwhy/libother.so"))
    assert found.startswith("has 2 native libraries")
    for damaged in (b"", whole[:100], b"\0" * 5000):
        (found,) = complaints(wheel(tmp_path, LINUX, damaged))
        assert found == "torchwhy/libtorchwhy_trace.so is no library that could be read"


def test_files_that_have_no_place_in_a_wheel_are_found(tmp_path, library):
    found = complaints(
        wheel(tmp_path, LINUX, library(LINUX), "torchwhy/libx.a", "torchwhy/__pycache__/x.cpython-311.pyc")
    )
    assert found == ["holds torchwhy/libx.a", "holds torchwhy/__pycache__/x.cpython-311.pyc"]


@pytest.fixture
def release(tmp_path, library, monkeypatch):
    """A folder with every file of a release 1.2.3."""
    monkeypatch.setattr("check_release.name_and_version", lambda package: (f"our_{package}", "1.2.3"))
    for name, text in {"CHANGELOG.md": "# Changelog\n\n## 1.2.3\n", "CITATION.cff": "version: 1.2.3\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("check_release.ROOT", tmp_path)
    for package in PACKAGES:
        for tag in (one.tag for one in PLATFORMS if package in one.packages):
            code = ANSWER.replace("torchwhy", package)
            made = wheel(tmp_path, tag, library(tag, code), package=package)
            made.rename(tmp_path / f"our_{made.name}")
        (tmp_path / f"our_{package}-1.2.3.tar.gz").touch()
    return tmp_path


def test_a_whole_release_passes(release):
    assert missing(release, "1.2.3") == []


def test_whatever_a_release_lacks_is_named(release):
    for path in sorted(release.iterdir()):
        kept = path.read_bytes()
        if path.suffix in {".whl", ".gz"}:
            path.unlink()
        else:
            path.write_bytes(b"")
        assert missing(release, "1.2.3"), path.name
        path.write_bytes(kept)


def test_a_wheel_where_there_is_no_pytorch_is_found(release, library):
    wheel(release, MUSL, library(MUSL, ANSWER.replace("torchwhy", "torchfx")), package="our_torchfx")
    assert "our_torchfx: a wheel for musllinux_1_2_x86_64, where it does not run" in missing(release, "1.2.3")


def test_a_release_of_another_version_is_none(release):
    found = "\n".join(missing(release, "1.2.4"))
    assert "pyproject.toml says version 1.2.3, the tag 1.2.4" in found
    assert "CHANGELOG.md has no heading '## 1.2.4'" in found
    assert "CITATION.cff is not of version 1.2.4" in found


def test_a_name_that_belongs_to_others_is_refused(release, monkeypatch):
    monkeypatch.setattr("check_release.NOT_OURS", {"our-torchfx"})
    (found,) = missing(release, "1.2.3")
    assert found.startswith("our_torchfx: another project's name on the index")


def test_libraries_with_different_functions_are_no_release(release, library):
    code = f"{ANSWER} {PUBLIC}int torchwhy_more(void) {{ return 1; }}"
    (path,) = release.glob(f"our_torchwhy-*{WINDOWS}.whl")
    wheel(release, WINDOWS, library(WINDOWS, code)).replace(path)
    assert missing(release, "1.2.3") == ["our_torchwhy: the wheels' libraries give out different functions"]


def test_both_packages_have_one_version():
    assert len({name_and_version(package)[1] for package in PACKAGES}) == 1


def test_a_bill_names_what_is_linked_in():
    bills = {system: json.loads(bill("torchwhy", "1.2.3", system)) for system in ("Linux", "Darwin", "Windows")}
    parts = {system: {part["name"] for part in found["components"]} for system, found in bills.items()}
    assert {"libc++", "libunwind"} <= parts["Linux"] == parts["Darwin"]
    assert parts["Windows"] - parts["Linux"] == {"mingw-w64 runtime"}
    assert bills["Linux"]["metadata"]["component"]["purl"] == "pkg:pypi/torchwhy@1.2.3"
