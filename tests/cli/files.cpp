#include "cli/files.hpp"

#include <stdlib.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace weir::cli_test {

scratch_folder::scratch_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "weir_cli_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  folder_ = name;
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string scratch_folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

std::string scratch_folder::write_gzip(const std::string& name, const std::string& text, std::size_t keep) const {
  gzFile file = gzopen(path(name).c_str(), "wb");
  if (file == nullptr ||
      gzwrite(file, text.data(), static_cast<unsigned>(text.size())) != static_cast<int>(text.size())) {
    throw std::runtime_error("gzwrite failed");
  }
  gzclose(file);
  if (keep != 0) std::filesystem::resize_file(path(name), keep);
  return path(name);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace weir::cli_test
