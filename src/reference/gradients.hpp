// Gradients of the oracle: what attention_backward() has to give, in plain passes over whole rows.
//
//   dV_j = sum_i drop(P_ij) dO_i,  dP_ij = drop(dO_i . V_j),  dS_ij = P_ij (dP_ij - D_i),  D_i = dO_i . O_i - dLSE_i
//   dr_ij = dS_ij (1 - (t_ij / cap)^2) scale,  dQ_i = sum_j dr_ij K_j,  dK_j = sum_i dr_ij Q_i
//
// with P computed from the log-sum-exp of the forward pass. The derivation is checked by central differences of the
// forward pass in the tests.
#pragma once

#include <vector>

#include "reference/attention.hpp"

namespace sdpa::reference {

// Gradients of a loss with respect to what the forward pass gave.
struct Upstream {
  std::vector<float> d_out;  // (B, Hq, L, Dv)
  std::vector<float> d_lse;  // (B, Hq, L), or empty: 0
};

// In the shapes of what they are gradients of; empty where the problem has no such operand. Rows beyond their query
// length count for nothing, whatever their d_out and d_lse.
template <class Real>
struct Gradients {
  std::vector<Real> query;
  std::vector<Real> key;
  std::vector<Real> value;
  std::vector<Real> bias;
  std::vector<Real> sinks;
  std::vector<Real> alibi_slopes;
  Real scale = 0;
};

// The truth: every operation in double, from a forward pass in double.
Gradients<double> gradients(const Problem& problem, const Upstream& upstream);

// The same passes with every operation rounded to float, from a forward pass in float.
Gradients<float> gradients_float32(const Problem& problem, const Upstream& upstream);

// How large the terms are that were added up to give each gradient: the same sums over absolute values.
Gradients<double> gradient_sizes(const Problem& problem, const Upstream& upstream);

}  // namespace sdpa::reference
