// Positions: which keys a query row may see by causal, window and lengths. One number, p = i + offset, serves them all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdpa/attention.hpp"

namespace sdpa::core {

/// The absolute position of query 0 of batch row `b`.
std::int64_t query_offset(const AttentionOptions& options, std::size_t b, std::size_t seqlen_q, std::size_t seqlen_kv);

/// Whether an option depends on the position of the query.
bool is_positional(const AttentionOptions& options);

/// Half-open intervals of keys for query rows [first, first + rows) of batch row `b`; {0, 0} for a row that sees
/// nothing.
void row_bounds(const AttentionOptions& options, std::size_t b, std::size_t seqlen_q, std::size_t seqlen_kv,
                std::size_t first, std::size_t rows, std::size_t* key_begin, std::size_t* key_end);

}  // namespace sdpa::core
