# `cmake --install` and CPack: the program, the library for other programs, the libraries that the program loads (the
# simulated driver of `roofgen run`, the MPI ranks), the manual page, completions of shells, and the documentation.
# Libraries that were not built are left out.

install(TARGETS roofgen RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The program looks in ../lib/roofgen, whatever the distribution calls its folder of libraries.
foreach(library roofgen_cuda_shim roofgen_cudart_shim_12 roofgen_cudart_shim_13 roofgen_mpi)
  if(TARGET ${library})  # a portable build has none of them
    set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${library} LIBRARY DESTINATION lib/roofgen OPTIONAL)
  endif()
endforeach()

# What find_package(roofgen) reads.
set(cmake_files ${CMAKE_INSTALL_LIBDIR}/cmake/roofgen)
install(FILES cmake/roofgenConfig.cmake cmake/roofgen_add_kernel.cmake DESTINATION ${cmake_files})
if(TARGET roofgen_library)
  install(TARGETS roofgen_library EXPORT roofgenTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES include/roofgen/roofgen.h include/roofgen/roofgen.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/roofgen)
  install(EXPORT roofgenTargets NAMESPACE roofgen:: DESTINATION ${cmake_files} FILE roofgenTargets.cmake)
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/roofgenConfigVersion.cmake COMPATIBILITY SameMajorVersion)
  file(RELATIVE_PATH roofgen_include /${CMAKE_INSTALL_LIBDIR} /${CMAKE_INSTALL_INCLUDEDIR})
  configure_file(cmake/roofgen.pc.in ${PROJECT_BINARY_DIR}/roofgen.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/roofgenConfigVersion.cmake DESTINATION ${cmake_files})
  install(FILES ${PROJECT_BINARY_DIR}/roofgen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

if(SKBUILD)  # the wheel of pyproject.toml, which has no links
  set_target_properties(roofgen_library PROPERTIES VERSION 1)
  install(TARGETS roofgen RUNTIME DESTINATION bin COMPONENT python)
  install(TARGETS roofgen_library LIBRARY DESTINATION lib NAMELINK_SKIP COMPONENT python)
endif()

install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Installs what `roofgen ARGUMENTS` prints: the program knows its flags.
function(roofgen_install_output folder name)
  list(JOIN ARGN " " arguments)
  install(CODE "set(output \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/${name}\")
    message(STATUS \"Installing: \${output}\")
    file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")
    execute_process(COMMAND \"$<TARGET_FILE:roofgen>\" ${arguments} OUTPUT_FILE \"\${output}\" COMMAND_ERROR_IS_FATAL ANY)")
endfunction()
roofgen_install_output(${CMAKE_INSTALL_MANDIR}/man1 roofgen.1 __manual)
# The folders in which bash, zsh and fish look.
roofgen_install_output(${CMAKE_INSTALL_DATADIR}/bash-completion/completions roofgen completion bash)
roofgen_install_output(${CMAKE_INSTALL_DATADIR}/zsh/site-functions _roofgen completion zsh)
roofgen_install_output(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d roofgen.fish completion fish)

# `cpack -G DEB` and `cpack -G TGZ`; the archive serves other machines with -DROOFGEN_PORTABLE=ON.
set(CPACK_PACKAGE_VENDOR "The roofgen authors")
set(CPACK_PACKAGE_CONTACT "The roofgen authors")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "librsvg2-bin")  # figures as PNG
include(CPack)
