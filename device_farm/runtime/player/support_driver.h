// A support-library driver: an NNAPI implementation that an app brings along, reached by a table of
// functions instead of by their names.
#ifndef NNFARM_PLAYER_SUPPORT_DRIVER_H_
#define NNFARM_PLAYER_SUPPORT_DRIVER_H_

#include <string>

namespace nnfarm {
namespace nnapi {

// A driver's table, NnApiSLDriverImplFL5, which later levels share. Valid for good: a driver is never
// unloaded.
class SupportDriver {
 public:
  // The table of the driver `library` (of dlopen) from `path`. Throws NnapiError (nnapi.missing).
  SupportDriver(void* library, const std::string& path);

  // The function of that name; null for one the table does not have.
  void* Find(const std::string& name) const;

 private:
  void* const* functions_;
};

}  // namespace nnapi
}  // namespace nnfarm

#endif  // NNFARM_PLAYER_SUPPORT_DRIVER_H_
