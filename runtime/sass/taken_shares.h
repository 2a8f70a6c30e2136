// How often branches are taken whose conditions the interpreter does not know, from a simulated run of the same PTX:
// both have the lines of the source.
#pragma once

#include <vector>

#include "runtime/executor.h"
#include "runtime/sass/line_table.h"
#include "runtime/sass/stream.h"

namespace roofgen::sass {

/// Shares for the forward branches and the conditional exits of `code`. `lines`: line_table() of its CUBIN; `sites`:
/// RunOptions::sites of a run of all CTAs or a part, whose executions count relative to each other. A branch that skips
/// lines is taken where these do not run: 1 - executions inside / executions of its own line. The median of the
/// instructions inside decides, because ptxas moves some there that belong elsewhere. Lines that run more often than
/// the branch (loops, and functions that are inlined in many places) say nothing.
TakenShare taken_shares(const Code& code, const std::vector<TextLine>& lines, const std::vector<SiteCounts>& sites);

}  // namespace roofgen::sass
