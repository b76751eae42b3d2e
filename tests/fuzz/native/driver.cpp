// What libFuzzer does at the least, for compilers that have none: the corpus, then random changes of it, until the time
// is over. Takes -max_total_time=SECONDS, -seed=NUMBER and folders of inputs. The input that ends the process is in the
// file crash-input.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<std::uint8_t>;

Input current;

void keep_current() {
  std::ofstream("crash-input", std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
}

void on_abort(int) {
  keep_current();
  std::_Exit(1);
}

void run(Input input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

Input changed(Input input, std::mt19937_64& engine) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(engine() % limit); };
  if (input.empty() || below(4) == 0) input.resize(below(400));
  for (std::size_t change = below(8); change > 0 && !input.empty(); --change) {
    input[below(input.size())] = static_cast<std::uint8_t>(below(3) == 0 ? 0 : engine());
  }
  if (below(3) == 0) {
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(engine());
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGABRT, on_abort);
  __sanitizer_set_death_callback(keep_current);
  std::vector<Input> corpus{{}};
  double seconds = 10;
  std::mt19937_64 engine(1);
  for (int n = 1; n < argc; ++n) {
    const std::string_view argument = argv[n];
    const auto number = [&] { return std::stod(std::string(argument.substr(argument.find('=') + 1))); };
    if (argument.starts_with("-max_total_time=")) {
      seconds = number();
    } else if (argument.starts_with("-seed=")) {
      engine.seed(static_cast<std::uint64_t>(number()));
    } else if (!argument.starts_with("-")) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      }
    }
  }
  for (const Input& input : corpus) run(input);
  const auto start = std::chrono::steady_clock::now();
  std::size_t runs = corpus.size();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    run(changed(corpus[engine() % corpus.size()], engine));
    ++runs;
  }
  std::fprintf(stderr, "Done %zu runs\n", runs);
  return 0;
}
