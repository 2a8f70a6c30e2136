# All dependencies come from the distribution; nothing is downloaded.
if(ROOFGEN_PORTABLE)
  include(cmake/portable.cmake)
endif()
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
# A value is read by get or get_to. Implicit conversions cost 4 % of the compilation of a large file: each overload that
# might take a value is tried with a conversion to each of its parameters' types.
add_compile_definitions(JSON_USE_IMPLICIT_CONVERSIONS=0)
find_package(CLI11 2.1 REQUIRED)
find_package(Eigen3 3.3 REQUIRED NO_MODULE)
if(NOT TARGET fmt::fmt)
  find_package(fmt REQUIRED)
endif()
find_package(SQLite3 3.31 REQUIRED)

# LLVM Support, and Object for the ELF files of the CUDA compiler; static, 14 or newer, not the large shared library.
find_package(LLVM REQUIRED CONFIG)
if(LLVM_VERSION_MAJOR LESS 14)
  message(FATAL_ERROR "LLVM 14 or newer is needed, found ${LLVM_VERSION}")
endif()
add_library(roofgen_llvm INTERFACE)
target_include_directories(roofgen_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(roofgen_llvm INTERFACE LLVMSupport)
add_library(roofgen_llvm_object INTERFACE)
target_link_libraries(roofgen_llvm_object INTERFACE roofgen_llvm LLVMObject)

if(ROOFGEN_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ROOFGEN_BENCH)
  find_package(benchmark REQUIRED)
endif()
