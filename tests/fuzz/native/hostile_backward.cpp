#include "broken.hpp"
#include "hostile.hpp"
#include "support/gradients.hpp"

namespace sdpa::fuzzing {
namespace {

using testing::BackwardArguments;

template <class T>
void break_view(Bytes& bytes, TensorView<T>& view) {
  const std::size_t rank = bytes.size(0, 3);
  if (bytes.chance(60)) {
    view = {nullptr, view.extents(), view.strides()};
  } else if (bytes.chance(60)) {
    const auto [batch, head, row, column] = view.strides();
    view = {view.data_handle(), view.extents(), {batch, head, row, bytes.choose({column - 1, column + 1, kMost})}};
  } else {
    view = with_extent(view, rank, any_size(bytes, view.extent(rank)));
  }
}

void break_tensor(Bytes& bytes, BackwardTensors& t) {
  switch (bytes.size(0, 8)) {
    case 0:
      return break_view(bytes, t.out);
    case 1:
      return break_view(bytes, t.lse);
    case 2:
      return break_view(bytes, t.d_out);
    case 3:
      return break_view(bytes, t.d_lse);
    case 4:
      return break_view(bytes, t.d_query);
    case 5:
      return break_view(bytes, t.d_key);
    case 6:
      return break_view(bytes, t.d_value);
    case 7:
      return break_view(bytes, t.d_bias);
    default:
      std::span<double>& numbers = *bytes.choose({&t.d_scale, &t.d_sinks, &t.d_alibi_slopes});
      // Of the sums that there are; those of another operand are as many.
      numbers = t.d_scale.first(bytes.size(0, t.d_scale.size()));
  }
}

template <class T>
bool view_within(const TensorView<T>& now, const TensorView<T>& before) {
  return within(now.extents(), before.extents()) && now.stride(3) <= before.stride(3);
}

bool may_run(const BackwardTensors& t, const BackwardTensors& was) {
  return view_within(t.out, was.out) && view_within(t.lse, was.lse) && view_within(t.d_out, was.d_out) &&
         view_within(t.d_lse, was.d_lse) && view_within(t.d_query, was.d_query) && view_within(t.d_key, was.d_key) &&
         view_within(t.d_value, was.d_value) && view_within(t.d_bias, was.d_bias);
}

}  // namespace

bool survives_backward_faults(Bytes& bytes, const Drawn& drawn) {
  const auto& [problem, run, table, wild] = drawn;
  RunOptions options = run;
  options.lse = true;
  options.scores_stage = ScoresStage::kNone;
  const testing::Actual forward = testing::run(*table, problem, options);
  const auto upstream = testing::random_upstream(problem);
  BackwardArguments a(problem, options, upstream, forward);
  const BackwardTensors was = a.tensors;
  const AttentionOptions had = a.options();
  const std::size_t faults = bytes.size(1, 3);
  for (std::size_t n = 0; n < faults; ++n) {
    if (bytes.chance(150)) {
      break_tensor(bytes, a.tensors);
    } else {
      break_option(bytes, a.tensors.query.extents(), a.tensors.key.extents(), a.options());
    }
  }
  const WorkspaceSize size = core::attention_backward_workspace_bytes(*table, a.tensors, a.options());
  if (size.status.ok() &&
      !(size.bytes < std::size_t{1} << 26 && may_run(a.tensors, was) && operands_within(a.options(), had, true))) {
    return true;
  }
  const Status status = testing::backward_status(*table, a);
  return !status.ok() || a.gaps_untouched();
}

}  // namespace sdpa::fuzzing
