// Encodes requests and replies as frames.
#include "runtime/compile/pool.h"

namespace roofgen {

Fields encode_request(const CompileRequest& request) {
  Fields fields{request.source, std::to_string(request.flags.size())};
  fields.insert(fields.end(), request.flags.begin(), request.flags.end());
  for (const auto& [name, text] : request.headers) {
    fields.push_back(name);
    fields.push_back(text);
  }
  return fields;
}

std::optional<CompileRequest> decode_request(const Fields& fields) {
  if (fields.size() < 2) return std::nullopt;
  size_t flags = std::strtoull(fields[1].c_str(), nullptr, 10);
  if (flags > fields.size() - 2 || (fields.size() - 2 - flags) % 2 != 0) return std::nullopt;
  CompileRequest request;
  request.source = fields[0];
  size_t next = 2;
  for (; next < 2 + flags; ++next) request.flags.push_back(fields[next]);
  for (; next < fields.size(); next += 2) request.headers.emplace_back(fields[next], fields[next + 1]);
  return request;
}

Fields encode_reply(const CompileReply& reply) {
  return {std::to_string(reply.status), reply.status_name, reply.log, reply.ptx, reply.cubin};
}

std::optional<CompileReply> decode_reply(const Fields& fields) {
  if (fields.size() != 5) return std::nullopt;
  CompileReply reply;
  reply.status = static_cast<int>(std::strtol(fields[0].c_str(), nullptr, 10));
  reply.status_name = fields[1];
  reply.log = fields[2];
  reply.ptx = fields[3];
  reply.cubin = fields[4];
  return reply;
}

}  // namespace roofgen
