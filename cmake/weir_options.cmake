# Options, and `weir_target(name)`: what every target of ours is compiled with.

include(GNUInstallDirs)

option(WEIR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(WEIR_BUILD_BENCH "Build weir_bench" ${PROJECT_IS_TOP_LEVEL})
option(WEIR_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(WEIR_BUILD_PROGRAM "Build the weir program" ${PROJECT_IS_TOP_LEVEL})
option(WEIR_INSTALL "Install rules" ${PROJECT_IS_TOP_LEVEL})
option(WEIR_WERROR "Warnings are errors" ${PROJECT_IS_TOP_LEVEL})
set(WEIR_SANITIZE "" CACHE STRING "address (with undefined behaviour), thread, or nothing")
set_property(CACHE WEIR_SANITIZE PROPERTY STRINGS "" address thread)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, ..." FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

  find_program(WEIR_CCACHE ccache)
  mark_as_advanced(WEIR_CCACHE)
  if(WEIR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${WEIR_CCACHE})
  endif()
endif()

if(WEIR_SANITIZE STREQUAL "address")
  set(weir_sanitize_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(WEIR_SANITIZE STREQUAL "thread")
  set(weir_sanitize_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(WEIR_SANITIZE)
  message(FATAL_ERROR "WEIR_SANITIZE: '${WEIR_SANITIZE}' is neither address nor thread")
endif()

function(weir_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # g++ counts these apart from -Wconversion: one rule for both compilers.
    target_compile_options(${name} PRIVATE -Wno-sign-conversion)
  endif()
  if(WEIR_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(weir_sanitize_flags)
    target_compile_options(${name} PRIVATE ${weir_sanitize_flags})
    target_link_options(${name} PRIVATE ${weir_sanitize_flags})
  endif()
endfunction()
