# A CMake toolchain: compiles for the system that the environment names with the C++ compiler of Zig (PyPI: ziglang), which
# brings the headers and libraries of every system along. tools/wheels.py sets the variables.
set(CMAKE_SYSTEM_NAME "$ENV{ZIG_SYSTEM}")
set(CMAKE_SYSTEM_PROCESSOR "$ENV{ZIG_PROCESSOR}")
set(CMAKE_CXX_COMPILER "$ENV{ZIG}" c++ -target "$ENV{ZIG_TARGET}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The C++ library is linked in; its names stay inside.
  string(APPEND CMAKE_SHARED_LINKER_FLAGS_INIT " -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/interface.map")
endif()
# Zig links for macOS without Apple's tools; nothing is renamed after linking.
set(CMAKE_INSTALL_NAME_TOOL "${CMAKE_COMMAND}")
