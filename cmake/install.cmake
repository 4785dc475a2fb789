# Installation: headers, library, program, CMake package, pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(TARGET brisk_cli)
  install(TARGETS brisk_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS brisk brisk_kernels EXPORT brisk-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/brisk" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(brisk_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/brisk)
set(brisk_components "")
if(BRISK_HAVE_CUDA)
  list(APPEND brisk_components cuda)
endif()
install(EXPORT brisk-targets NAMESPACE brisk:: DESTINATION ${brisk_package_folder})
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/brisk-config.cmake.in"
  "${PROJECT_BINARY_DIR}/brisk-config.cmake" INSTALL_DESTINATION ${brisk_package_folder})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/brisk-config-version.cmake" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/brisk-config.cmake" "${PROJECT_BINARY_DIR}/brisk-config-version.cmake"
  DESTINATION ${brisk_package_folder})

# A shared library brings its own dependencies; a static one lists them.
set(brisk_pc_private "-lz -pthread")
if(BRISK_HAVE_ONEDNN)
  string(PREPEND brisk_pc_private "-ldnnl ")
endif()
if(BRISK_HAVE_PNG)
  string(PREPEND brisk_pc_private "-lpng ")
endif()
if(BRISK_HAVE_JPEG)
  string(PREPEND brisk_pc_private "-ljpeg ")
endif()
if(BRISK_HAVE_CUDA)
  string(PREPEND brisk_pc_private "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl ")
endif()
string(PREPEND brisk_pc_private "-lbrisk_kernels ")
set(brisk_pc_public "")
if(NOT BUILD_SHARED_LIBS)
  set(brisk_pc_public " ${brisk_pc_private}")
endif()
# The prefix as seen from the file's own folder, so that an installed tree may be moved.
file(RELATIVE_PATH brisk_pc_up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" brisk_pc_up "${brisk_pc_up}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/brisk.pc.in" "${PROJECT_BINARY_DIR}/brisk.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/brisk.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
