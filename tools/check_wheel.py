"""Check wheels of this repository without their platform: `python tools/check_wheel.py dist/*.whl`.

A wheel is right if its native library is there, is for the processor that the tag names, needs nothing but what the
oldest system of the tag has, gives out the interface's functions only, and holds no path of the machine that built it.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import lief

LARGEST = 4_000_000  # bytes
LIBRARIES = (".so", ".dylib", ".dll")
OF_MACOS = re.compile(r"_mh_dylib_header|__dso_handle|_Z(n[aw]|d[al]).*")
"""Symbols that Zig's linker cannot hide: its own marks, and operators new and delete, weak and over malloc as in the
system."""

LINUX = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
LINUX |= {"ld-linux-aarch64.so.1", "libc.so"}
MACOS = {"/usr/lib/libSystem.B.dylib", "/usr/lib/libc++.1.dylib"}
WINDOWS = {"kernel32.dll", "ntdll.dll", "ucrtbase.dll"}


def complaints(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel; nothing if it is right."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = [name for name in names if name.endswith(LIBRARIES)]
        if len(libraries) != 1:
            return [f"has {len(libraries)} native libraries, 1 is right: {libraries}"]
        found = [f"holds {name}" for name in names if name.endswith((".a", ".lib", ".pdb", ".pyc"))]
        found += [] if any(".dist-info/sboms/" in name for name in names) else ["says nowhere what is linked in (SBOM)"]
        library = archive.read(libraries[0])
    if wheel.stat().st_size > LARGEST:
        found.append(f"is larger than {LARGEST / 1e6:.0f} MB")
    if str(Path.home()).encode() in library or str(Path(__file__).parents[1]).encode() in library:
        found.append("holds a path of the machine that built it")
    parsed = lief.parse(list(library))
    tag = wheel.stem.split("-", 4)[-1]
    package = Path(libraries[0]).parts[0]
    if isinstance(parsed, lief.ELF.Binary) and parsed.segments:
        found += _elf(parsed, tag)
    elif isinstance(parsed, lief.MachO.Binary):
        found += _macho(parsed, tag)
    elif isinstance(parsed, lief.PE.Binary):
        found += _windows(parsed, tag)
    else:
        return [*found, f"{libraries[0]} is no library that could be read"]
    return found + _exports(parsed, package)


def exported_names(wheel: Path) -> set[str]:
    """Return the names of the functions that a wheel's native libraries give out."""
    with zipfile.ZipFile(wheel) as archive:
        libraries = [archive.read(name) for name in archive.namelist() if name.endswith(LIBRARIES)]
    return {name for library in libraries for name in _exported(lief.parse(list(library)))}


def _exported(parsed: lief.Binary | None) -> set[str]:
    if parsed is None:
        return set()
    if isinstance(parsed, lief.ELF.Binary):
        return {str(one.name) for one in parsed.exported_symbols}
    if isinstance(parsed, lief.PE.Binary):
        return {str(one.name) for one in parsed.get_export().entries}
    names = {str(one.name).removeprefix("_") for one in parsed.exported_symbols}
    return {name for name in names if not OF_MACOS.fullmatch(name)}


def _exports(parsed: lief.Binary, package: str) -> list[str]:
    names = _exported(parsed)
    foreign = sorted(name for name in names if not name.startswith(f"{package}_"))
    if foreign:
        return [f"gives out {len(foreign)} names that are not the interface's: {', '.join(foreign[:3])}"]
    return [] if names else ["gives out no function"]


def _needs(needed: set[str], allowed: set[str]) -> list[str]:
    return [f"needs {', '.join(sorted(needed - allowed))}"] if needed - allowed else []


def _elf(parsed: lief.ELF.Binary, tag: str) -> list[str]:
    found = _needs({str(name) for name in parsed.libraries}, LINUX)
    machine = "x86_64" if parsed.header.machine_type == lief.ELF.ARCH.X86_64 else "aarch64"
    if machine not in tag:
        found.append(f"is for {machine}")
    versions = [name.name for one in parsed.symbols_version_requirement for name in one.get_auxiliary_symbols()]
    numbers = [tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in versions if "GLIBC_" in name]
    oldest = re.search(r"manylinux_(\d+)_(\d+)", tag)
    if oldest is None and numbers:
        found.append("needs glibc")
    elif oldest and max(numbers, default=(0, 0)) > tuple(map(int, oldest.groups())):
        found.append(f"needs glibc {max(numbers)}")
    if parsed.has(lief.ELF.DynamicEntry.TAG.RPATH) or parsed.has(lief.ELF.DynamicEntry.TAG.RUNPATH):
        found.append("has a run path")
    stack = parsed.get(lief.ELF.Segment.TYPE.GNU_STACK)
    if stack is not None and stack.has(lief.ELF.Segment.FLAGS.X):
        found.append("asks for an executable stack")
    return found


def _macho(parsed: lief.MachO.Binary, tag: str) -> list[str]:
    own = {str(parsed.libraries[0].name)} if parsed.header.file_type == lief.MachO.Header.FILE_TYPE.DYLIB else set()
    found = _needs({str(one.name) for one in parsed.libraries} - own, MACOS)
    machine = "arm64" if parsed.header.cpu_type == lief.MachO.Header.CPU_TYPE.ARM64 else "x86_64"
    if not tag.endswith(machine):
        found.append(f"is for {machine}")
    oldest = re.search(r"macosx_(\d+)_(\d+)", tag)
    minimum = parsed.build_version.minos if parsed.build_version else parsed.version_min.version
    if oldest is None or tuple(minimum[:2]) > tuple(map(int, oldest.groups())):
        found.append(f"needs macOS {'.'.join(map(str, minimum))}")
    if machine == "arm64" and not parsed.has_code_signature:
        found.append("is not signed, which macOS on ARM asks for")
    return found


def _windows(parsed: lief.PE.Binary, tag: str) -> list[str]:
    needed = {str(one.name).lower() for one in parsed.imports}
    found = _needs({name for name in needed if not name.startswith("api-ms-win-crt-")}, WINDOWS)
    machine = "win_arm64" if parsed.header.machine == lief.PE.Header.MACHINE_TYPES.ARM64 else "win_amd64"
    return found if machine == tag else [*found, f"is for {machine}"]


def main() -> int:
    """Check the wheels that are named; return 1 if one isn't right."""
    wrong = 0
    for name in sys.argv[1:]:
        found = complaints(Path(name))
        wrong += bool(found)
        print(f"{Path(name).name}: {'; '.join(found) or 'ok'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
