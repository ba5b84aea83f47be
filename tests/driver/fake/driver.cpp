// A driver library as far as the loader looks: it answers for its version and hands out addresses. FAKE_VERSION is its
// version, FAKE_MISSING the one call it does not have. Calls newer than its version are missing too.
#include <cstring>

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = FAKE_VERSION;
  return 0;
}

int cuGetProcAddress_v2(const char* name, void** address, int version, unsigned long long flags, int* found) {
  // The loader must ask for the legacy stream's form (1), whatever its user was compiled for.
  if (flags != 1 || version > FAKE_VERSION || std::strcmp(name, FAKE_MISSING) == 0) {
    *found = 1;
    return 500;
  }
  *found = 0;
  *address = reinterpret_cast<void*>(cuDriverGetVersion);
  return 0;
}

}  // extern "C"
