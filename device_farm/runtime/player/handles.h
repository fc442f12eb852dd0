// Owned NNAPI handles: freed in the reverse order of their members, by the library that made them.
#ifndef NNFARM_PLAYER_HANDLES_H_
#define NNFARM_PLAYER_HANDLES_H_

#include <memory>

#include "player/nnapi.h"

namespace nnfarm {

template <typename Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

// An owner of nothing yet, that will free with `release`.
template <typename Handle>
Owned<Handle> Unset(void (*release)(Handle*)) {
  return Owned<Handle>(nullptr, release);
}

// Runs `create(Handle**)` and owns what it made; throws NnapiError `code` naming `function`, also for
// a library that reports success and makes nothing.
template <typename Handle, typename Create>
Owned<Handle> Make(void (*release)(Handle*), const char* code, const char* function,
                   Create create) {
  Handle* handle = nullptr;
  nnapi::Check(create(&handle), code, function);
  nnapi::RequireMade(handle, code, function);
  return Owned<Handle>(handle, release);
}

}  // namespace nnfarm

#endif  // NNFARM_PLAYER_HANDLES_H_
