# torch::cpu from the PyTorch of FUSEBOARD_PYTHON, by full paths: torch's own CMake package would search the system first
# and may mix two libc10 in one program.
set(FUSEBOARD_PYTHON "$ENV{FUSEBOARD_PYTHON}" CACHE FILEPATH "Python interpreter with torch")
if(NOT FUSEBOARD_PYTHON)
    set(FUSEBOARD_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "" FORCE)
endif()
execute_process(
    COMMAND ${FUSEBOARD_PYTHON} -c "import os, torch; print(os.path.dirname(torch.__file__), torch.__version__, int(torch._C._GLIBCXX_USE_CXX11_ABI), sep=';', end='')"
    OUTPUT_VARIABLE TORCH_FACTS ERROR_VARIABLE TORCH_ERROR RESULT_VARIABLE TORCH_FAILED)
if(TORCH_FAILED)
    message(FATAL_ERROR "${FUSEBOARD_PYTHON} has no working torch; run ./dev build, or name another with --python. ${TORCH_ERROR}")
endif()
list(GET TORCH_FACTS 0 TORCH_DIR)
list(GET TORCH_FACTS 1 TORCH_VERSION)
list(GET TORCH_FACTS 2 TORCH_CXX11_ABI)
if(TORCH_VERSION VERSION_LESS 2.6)
    message(FATAL_ERROR "torch ${TORCH_VERSION} in ${FUSEBOARD_PYTHON} is too old to build against: 2.6 or newer is needed")
endif()
if(NOT TORCH_CXX11_ABI)
    message(FATAL_ERROR "torch ${TORCH_VERSION} in ${FUSEBOARD_PYTHON} was built with the old C++ ABI; take a build with the C++11 ABI")
endif()
message(STATUS "torch ${TORCH_VERSION} in ${TORCH_DIR}")

add_library(torch::cpu INTERFACE IMPORTED)
target_include_directories(torch::cpu SYSTEM INTERFACE ${TORCH_DIR}/include ${TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(torch::cpu INTERFACE ${TORCH_DIR}/lib/libtorch_cpu.so ${TORCH_DIR}/lib/libc10.so)
target_link_options(torch::cpu INTERFACE -Wl,--no-as-needed -Wl,--disable-new-dtags -Wl,-rpath,${TORCH_DIR}/lib)
