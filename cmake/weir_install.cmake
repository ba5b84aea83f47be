# Headers, libraries, program, the CMake package and weir.pc.

include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir TYPE INCLUDE FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(TARGETS weir weir_static EXPORT weirTargets)
if(TARGET weir_program)
  install(TARGETS weir_program)
endif()

set(weir_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${weir_cmake_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/weirConfig.cmake.in ${PROJECT_BINARY_DIR}/weirConfig.cmake
  INSTALL_DESTINATION ${weir_cmake_dir})
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
  DESTINATION ${weir_cmake_dir})

# Relative to the file, so that an installed tree may be moved.
file(RELATIVE_PATH weir_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" weir_pc_prefix "${weir_pc_prefix}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
