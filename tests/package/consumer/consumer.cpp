#include <cstdio>
#include <roofgen/roofgen.hpp>

int main() {
  auto session = roofgen::Session::open();
  if (!session) return std::fprintf(stderr, "%s\n", session.error().message.c_str()), 1;
  const auto source = roofgen::generate(*session, roofgen::Request("softmax").set("rows", 64).set("cols", 256));
  if (!source) return std::fprintf(stderr, "%s\n", source.error().message.c_str()), 1;
  std::fputs(source->text(), stdout);
  const auto wrong = roofgen::generate(*session, roofgen::Request("softmax").set("rows", 64).set("colls", 256));
  return wrong || wrong.error().status != ROOFGEN_USAGE || wrong.error().column != 1;
}
