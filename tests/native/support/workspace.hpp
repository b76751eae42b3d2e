// Scratch memory of an exact size and alignment, full of NaN: what a kernel reads of it without having written it
// shows.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>

#include "sdpa/attention.hpp"

namespace sdpa::testing {

class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : bytes_(bytes) {
    if (bytes_ == 0) return;
    data_ = static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{kWorkspaceAlignment}));
    std::memset(data_, 255, bytes_);
  }
  ~Workspace() { ::operator delete (data_, std::align_val_t{kWorkspaceAlignment}); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::span<std::byte> span() const { return {data_, bytes_}; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace sdpa::testing
