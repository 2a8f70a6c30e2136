// The wire format between the pool and its workers.
#include "base/frame.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "runtime/compile/pool.h"

namespace roofgen::frame_test {
namespace {

const Fields kFields{"", std::string("\0\xff", 2), std::string(100000, 'x')};

TEST(Frame, ComesBackWholeInAnyPieces) {
  std::string wire = encode_frame(kFields) + encode_frame({});
  for (size_t cut : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, wire.size() / 2}) {
    std::string buffer = wire.substr(0, cut);
    bool bad = false;
    EXPECT_FALSE(take_frame(buffer, &bad));
    EXPECT_FALSE(bad);
    buffer += wire.substr(cut);
    EXPECT_EQ(take_frame(buffer, &bad), kFields);
    EXPECT_EQ(take_frame(buffer, &bad), Fields());
    EXPECT_FALSE(take_frame(buffer, &bad));
    EXPECT_FALSE(bad);
    EXPECT_TRUE(buffer.empty());
  }
}

TEST(Frame, DamagedBytesAreNeverTrusted) {
  std::string wire = encode_frame({"abc", "defg"});
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string buffer = wire;
    for (int flips = 0; flips < 3; ++flips) buffer[random() % buffer.size()] ^= static_cast<char>(1 << random() % 8);
    bool bad = false;
    auto fields = take_frame(buffer, &bad);
    if (fields) {
      size_t bytes = 0;
      for (const std::string& field : *fields) bytes += field.size();
      EXPECT_LE(bytes, wire.size());
    }
  }
}

TEST(Frame, BadMagicIsBad) {
  std::string buffer(64, 'z');
  bool bad = false;
  EXPECT_FALSE(take_frame(buffer, &bad));
  EXPECT_TRUE(bad);
}

TEST(Frame, CrossesASocketAndEndsAtItsEnd) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  std::thread writer([&] {
    EXPECT_TRUE(write_frame(pair[1], kFields));
    close(pair[1]);
  });
  EXPECT_EQ(read_frame(pair[0]), kFields);
  writer.join();
  EXPECT_FALSE(read_frame(pair[0]));
  EXPECT_FALSE(write_frame(pair[0], kFields)) << "the other end is closed";
  close(pair[0]);
}

TEST(Frame, RequestsAndRepliesSurvive) {
  CompileRequest request{"source", {"-a", "-b"}, {{"x.h", "text"}, {"y/z.h", ""}}};
  auto back = decode_request(encode_request(request));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->source, request.source);
  EXPECT_EQ(back->flags, request.flags);
  EXPECT_EQ(back->headers, request.headers);
  EXPECT_FALSE(decode_request({"source", "7"}));
  EXPECT_FALSE(decode_request({"source", "0", "header without text"}));
  EXPECT_FALSE(decode_request({}));

  CompileReply reply{6, "NAME", "log", "ptx", std::string("\0cubin", 6)};
  auto answer = decode_reply(encode_reply(reply));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 6);
  EXPECT_EQ(answer->cubin, reply.cubin);
  EXPECT_FALSE(decode_reply({"6"}));
}

}  // namespace
}  // namespace roofgen::frame_test
