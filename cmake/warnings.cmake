add_compile_options(-Wall -Wextra -Wshadow -Wno-unused-parameter)
# GCC 12 takes moved-from std::variant and std::string for uninitialised or overlapping at -O2 and above.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict)
endif()
# Results must not depend on whether the host contracts a*b+c: the simulator and the references
# say fma where they mean it.
add_compile_options(-ffp-contract=off)
if(ROOFGEN_WERROR)
  add_compile_options(-Werror)
endif()
if(ROOFGEN_SANITIZE)
  add_compile_options(-fsanitize=${ROOFGEN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ROOFGEN_SANITIZE})
endif()
