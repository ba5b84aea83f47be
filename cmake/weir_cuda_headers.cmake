# Finds the folder of cuda.h and offers it as weir::cuda_headers. Only headers: nothing links libcuda, which is opened
# at run time. Looked for, in this order: WEIR_CUDA_INCLUDE, a toolkit, NVIDIA's Python packages.

set(WEIR_CUDA_INCLUDE "" CACHE PATH "Folder of cuda.h (empty: search)")

set(weir_toolkits ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda /opt/cuda)
set(weir_cuda_places "")
foreach(root IN LISTS weir_toolkits)
  list(APPEND weir_cuda_places ${root}/include ${root}/targets/x86_64-linux/include ${root}/targets/sbsa-linux/include)
endforeach()

# The packages put their headers under site-packages/nvidia/<part>/include; <part> depends on the major version.
file(GLOB weir_python_roots
  ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages
  $ENV{VIRTUAL_ENV}/lib/python3*/site-packages
  /usr/local/lib/python3*/dist-packages /usr/local/lib/python3*/site-packages /usr/lib/python3/dist-packages)
foreach(root IN LISTS weir_python_roots)
  list(APPEND weir_cuda_places ${root}/nvidia/cu13/include ${root}/nvidia/cu12/include ${root}/nvidia/cuda_runtime/include)
endforeach()

if(WEIR_CUDA_INCLUDE)
  set(weir_cuda_places ${WEIR_CUDA_INCLUDE})
endif()

set(weir_cuda_include "")
foreach(place IN LISTS weir_cuda_places)
  if(EXISTS ${place}/cuda.h)
    set(weir_cuda_include ${place})
    break()
  endif()
endforeach()
if(NOT weir_cuda_include)
  message(FATAL_ERROR
    "cuda.h not found: install the CUDA toolkit, run cmake/install_dependencies.sh (takes NVIDIA's Python packages), "
    "or set -DWEIR_CUDA_INCLUDE=<folder of cuda.h>. Looked in: ${weir_cuda_places}")
endif()

file(STRINGS ${weir_cuda_include}/cuda.h weir_cuda_version REGEX "#define CUDA_VERSION ")
string(REGEX REPLACE ".*CUDA_VERSION +([0-9]+).*" "\\1" weir_cuda_version "${weir_cuda_version}")
if(weir_cuda_version LESS 12000)
  message(FATAL_ERROR "${weir_cuda_include}/cuda.h is of CUDA ${weir_cuda_version}: 12000 or newer is needed")
endif()
message(STATUS "CUDA headers: ${weir_cuda_include} (${weir_cuda_version})")

add_library(weir_cuda_headers INTERFACE)
add_library(weir::cuda_headers ALIAS weir_cuda_headers)
target_include_directories(weir_cuda_headers SYSTEM INTERFACE ${weir_cuda_include})
