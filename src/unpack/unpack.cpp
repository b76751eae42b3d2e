// Unpacks the wasm builds that the package carries inside its JavaScript: a module of its own, below 2 KB, that imports
// nothing.
//
// The builds share most of their code, hundreds of KB apart, which DEFLATE with its window of 32 KB cannot see: it
// leaves 2.5 times as much. The format is raw LZMA with lc = 3, lp = 0, pb = 0 and no end mark, as liblzma writes and
// the LZMA SDK's lzma-specification.txt describes: a sequence of literals, copies of `length` bytes from `distance`
// back, and copies from one of the last four distances. Each is written as yes-or-no decisions, and each decision by a
// range coder with the probability that it had so far in its own context, of which the contexts below are all.
//
// In wasm rather than in JavaScript, because it runs once, cold: an engine's first tier compiles this to machine code
// at once and takes a few ms a build, where it would interpret JavaScript for some tens. The functions are small for
// the same reason: an engine replaces them by optimised code between two calls, not within one.
//
// The input is the package's own: what is damaged unpacks to something else, which does not compile, or ends in a trap.

#include <cstddef>
#include <cstdint>

namespace {

using std::size_t;
using std::uint32_t;
using std::uint8_t;

// How probable 0 is, in 1/2048.
using Probability = std::uint16_t;
constexpr Probability kEven = 1024;
constexpr uint32_t kProbabilityBits = 11;
// A decision moves its probability by 1/32 of the way.
constexpr uint32_t kAdaptation = 5;

// What has come last: states below kAfterCopy follow literals.
constexpr uint32_t kStates = 12;
constexpr uint32_t kAfterCopy = 7;

constexpr uint32_t kShortest = 2;
// Slots of distances: from 4 on each has a power of 2 of distances, and from 14 on only their last 4 bits have
// contexts.
constexpr uint32_t kFirstWideSlot = 4;
constexpr uint32_t kFirstDirectSlot = 14;
constexpr uint32_t kAlignBits = 4;

struct LengthModel {
  Probability not_low;
  Probability not_middle;
  Probability low[8];
  Probability middle[8];
  Probability high[256];
};

struct Model {
  Probability copy[kStates];
  Probability again[kStates];
  Probability not_last[kStates];
  Probability not_second[kStates];
  Probability not_third[kStates];
  Probability longer_than_one[kStates];
  Probability slot[4][64];
  Probability within_slot[128];
  Probability align[1 << kAlignBits];
  LengthModel length;
  LengthModel length_again;
  // By the upper 3 bits of the byte before; of 0x300, the last 0x200 are for literals that follow a copy.
  Probability literal[8][0x300];
};

// Statics: an instance unpacks once.
Model model;
const uint8_t* input;
uint32_t range;
uint32_t code;

void refill() {
  if (range >= 1u << 24) return;
  range <<= 8;
  code = code << 8 | *input++;
}

uint32_t decide(Probability& probability) {
  const uint32_t bound = (range >> kProbabilityBits) * probability;
  const bool is_one = code >= bound;
  if (is_one) {
    range -= bound;
    code -= bound;
    probability -= probability >> kAdaptation;
  } else {
    range = bound;
    probability += ((1u << kProbabilityBits) - probability) >> kAdaptation;
  }
  refill();
  return is_one;
}

uint32_t even_bits(uint32_t count) {
  uint32_t value = 0;
  for (; count > 0; --count) {
    range >>= 1;
    const bool is_one = code >= range;
    if (is_one) code -= range;
    value = value << 1 | is_one;
    refill();
  }
  return value;
}

// A number of `count` bits, the first decided first; the context of each is what the ones before it were.
uint32_t bits(Probability* tree, uint32_t count) {
  uint32_t node = 1;
  for (uint32_t i = 0; i < count; ++i) node = node << 1 | decide(tree[node]);
  return node - (1u << count);
}

// The same, the last bit decided first.
uint32_t reversed_bits(Probability* tree, uint32_t count) {
  uint32_t node = 1;
  uint32_t value = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t bit = decide(tree[node]);
    node = node << 1 | bit;
    value |= bit << i;
  }
  return value;
}

// `before`: the byte before; `expected`: where a copy has just ended, the one that it would have gone on with.
uint8_t literal(uint8_t before, bool after_copy, uint32_t expected) {
  Probability* tree = model.literal[before >> 5];
  uint32_t node = 1;
  while (after_copy && node < 0x100) {
    const uint32_t guess = expected >> 7 & 1;
    expected <<= 1;
    const uint32_t bit = decide(tree[((1 + guess) << 8) + node]);
    node = node << 1 | bit;
    after_copy = bit == guess;
  }
  while (node < 0x100) node = node << 1 | decide(tree[node]);
  return static_cast<uint8_t>(node);
}

uint32_t length_of(LengthModel& lengths) {
  if (!decide(lengths.not_low)) return kShortest + bits(lengths.low, 3);
  if (!decide(lengths.not_middle)) return kShortest + 8 + bits(lengths.middle, 3);
  return kShortest + 16 + bits(lengths.high, 8);
}

// One less than the bytes that a copy reaches back.
uint32_t distance_of(uint32_t length) {
  const uint32_t row = length - kShortest < 3 ? length - kShortest : 3;
  const uint32_t slot = bits(model.slot[row], 6);
  if (slot < kFirstWideSlot) return slot;
  const uint32_t count = (slot >> 1) - 1;
  const uint32_t first = (2 | (slot & 1)) << count;
  if (slot < kFirstDirectSlot) return first + reversed_bits(model.within_slot + first - slot, count);
  const uint32_t upper = even_bits(count - kAlignBits) << kAlignBits;
  return first + upper + reversed_bits(model.align, kAlignBits);
}

}  // namespace

// Writes the first `size` bytes of what `packed` holds to `out`.
extern "C" __attribute__((export_name("unpack"))) void unpack(const uint8_t* packed, uint8_t* out, uint32_t size) {
  auto* probabilities = reinterpret_cast<Probability*>(&model);
  for (size_t i = 0; i < sizeof(Model) / sizeof(Probability); ++i) probabilities[i] = kEven;
  input = packed + 1;  // the first byte is always 0
  range = ~0u;
  code = 0;
  for (int i = 0; i < 4; ++i) code = code << 8 | *input++;

  uint32_t state = 0;
  // Of the last four distances, the latest first.
  uint32_t last = 0, second = 0, third = 0, fourth = 0;
  uint32_t at = 0;
  while (at < size) {
    const bool after_copy = state >= kAfterCopy;
    if (!decide(model.copy[state])) {
      out[at] = literal(at > 0 ? out[at - 1] : 0, after_copy, after_copy ? out[at - last - 1] : 0);
      ++at;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    uint32_t length = 1;
    if (!decide(model.again[state])) {
      fourth = third;
      third = second;
      second = last;
      length = length_of(model.length);
      last = distance_of(length);
      state = after_copy ? 10 : 7;
    } else {
      bool single = false;
      if (!decide(model.not_last[state])) {
        single = !decide(model.longer_than_one[state]);
      } else {
        uint32_t distance = second;
        if (decide(model.not_second[state])) {
          distance = third;
          if (decide(model.not_third[state])) {
            distance = fourth;
            fourth = third;
          }
          third = second;
        }
        second = last;
        last = distance;
      }
      if (!single) length = length_of(model.length_again);
      state = (after_copy ? 11 : 8) + (single && !after_copy);
    }
    // The last copy may reach beyond what is wanted.
    if (length > size - at) length = size - at;
    for (; length > 0; --length, ++at) out[at] = out[at - last - 1];
  }
}
