// The table that cmake/embed.cmake generates. Private to generator/data_files.cpp.
#pragma once

#include <span>
#include <string_view>

namespace roofgen {

/// One file of templates/, search_spaces/ or devices/ as it was at build time.
struct EmbeddedFile {
  std::string_view name;  ///< relative to the source tree, with '/'
  std::string_view text;
};

/// Sorted by name.
std::span<const EmbeddedFile> embedded_files();

}  // namespace roofgen
