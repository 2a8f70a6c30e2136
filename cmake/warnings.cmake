add_compile_options(-Wall -Wextra -Wshadow -Wno-unused-parameter)
# At -O2 and above, GCC 12 reports moved-from std::variant and std::string as uninitialised or overlapping.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict)
endif()
# Results must not depend on contraction of a*b+c by the host compiler: the simulator and the references call fma
# explicitly.
add_compile_options(-ffp-contract=off)
if(ROOFGEN_WERROR)
  add_compile_options(-Werror)
endif()
if(ROOFGEN_SANITIZE)
  add_compile_options(-fsanitize=${ROOFGEN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ROOFGEN_SANITIZE})
endif()
