#include "compilation.h"

namespace nnsim {

Compilation::Compilation(std::shared_ptr<const Model> model,
                         std::vector<const DeviceSpec*> devices, bool exact)
    : model_(std::move(model)), devices_(std::move(devices)), exact_(exact) {}

Status Compilation::Finish() {
  if (finished_) return BadState("the compilation is finished");
  placement_.clear();
  for (const Operation& operation : model_->operations()) {
    size_t chosen = 0;
    while (chosen < devices_.size() &&
           !devices_[chosen]->Supports(operation.spec->name, operation.level)) {
      ++chosen;
    }
    NNSIM_REQUIRE(chosen < devices_.size(),
                  std::string(operation.spec->name) + " is supported by none of the devices");
    placement_.push_back(chosen);
  }
  finished_ = true;
  return Ok();
}

}  // namespace nnsim
