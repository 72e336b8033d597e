// Reads each JSON file as a type of the schema and writes it back equal: `round_trip TYPE FILE...`.
// With the type `refused`, each file must be refused as a program instead; the message is printed.
#include "schema.h"

#include <fstream>
#include <iostream>
#include <iterator>

static std::string content(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
static bool comes_back(const std::string& text) {
  const std::string written = pt2::encode_text(pt2::decode_text<T>(text));
  // The second comparison knows nothing of this header, but rounds integers beyond 64 bits.
  return pt2::parse(written) == pt2::parse(text) && nlohmann::json::parse(written) == nlohmann::json::parse(text);
}

static bool is_refused(const std::string& text) {
  try {
    pt2::decode_text<pt2::ExportedProgram>(text);
  } catch (const pt2::Error& error) {
    std::cout << error.what() << "\n";
    return true;
  }
  return false;
}

int main(int argc, char** argv) {
  const std::string type = argc > 1 ? argv[1] : "";
  int failures = 0;
  for (int i = 2; i < argc; ++i) {
    const std::string text = content(argv[i]);
    const bool good = type == "refused"         ? is_refused(text)
                      : type == "PayloadConfig" ? comes_back<pt2::PayloadConfig>(text)
                                                : comes_back<pt2::ExportedProgram>(text);
    if (!good) std::cerr << argv[i] << ": not as it should be\n", ++failures;
  }
  return failures == 0 ? 0 : 1;
}
