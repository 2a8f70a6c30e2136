# find_package(roofgen)
include(${CMAKE_CURRENT_LIST_DIR}/roofgenTargets.cmake OPTIONAL)
