#pragma once
// Files for the tests, in a folder of their own that goes with the test.

#include <string>

namespace weir::cli_test {

class scratch_folder {
 public:
  scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder();

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Writes `text` and gives the path.
  std::string write(const std::string& name, const std::string& text) const;
  /// The same, gzipped, and cut to the first `keep` bytes where that is not 0.
  std::string write_gzip(const std::string& name, const std::string& text, std::size_t keep = 0) const;

 private:
  std::string folder_;
};

[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace weir::cli_test
