# Everything from the distribution; nothing is fetched.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(fmt REQUIRED)
find_package(SQLite3 3.31 REQUIRED)

# LLVM Support, static, 14 or newer. Only the one component; never the big shared library.
find_package(LLVM REQUIRED CONFIG)
if(LLVM_VERSION_MAJOR LESS 14)
  message(FATAL_ERROR "LLVM 14 or newer is needed, found ${LLVM_VERSION}")
endif()
add_library(roofgen_llvm INTERFACE)
target_include_directories(roofgen_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(roofgen_llvm INTERFACE LLVMSupport)

if(ROOFGEN_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ROOFGEN_BENCH)
  find_package(benchmark REQUIRED)
endif()
