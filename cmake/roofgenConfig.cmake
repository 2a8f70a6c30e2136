# find_package(roofgen)
include(${CMAKE_CURRENT_LIST_DIR}/roofgenTargets.cmake OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/roofgen_add_kernel.cmake)
