// A model placed on devices.
#ifndef DEVICE_FARM_SIMULATOR_SRC_COMPILATION_H_
#define DEVICE_FARM_SIMULATOR_SRC_COMPILATION_H_

#include <memory>
#include <string>
#include <vector>

#include "interpreter.h"
#include "model.h"
#include "profile.h"

namespace nnsim {

// Whether the device's limits let it run an operation of the model.
bool Supports(const DeviceSpec& device, const Model& model, const Operation& operation);

class Compilation {
 public:
  // `devices`: in order of preference; empty: all of the phone, the reference device last.
  // `exact`: the caller named the devices, so there is no other to fall back to.
  Compilation(std::shared_ptr<const Model> model, std::vector<const DeviceSpec*> devices,
              bool exact);

  // Where compiled models are kept, by the token of 32 bytes.
  Status SetCaching(const std::string& directory, const uint8_t* token);
  // The longest Finish may take; 0: any time.
  void SetTimeout(uint64_t duration_ns) { timeout_us_ = static_cast<double>(duration_ns) / 1000; }
  // Gives each operation the first device that supports it; takes the modelled time.
  Status Finish();

  bool finished() const { return finished_; }
  bool one_device() const { return exact_ && devices_.size() == 1; }
  const Model& model() const { return *model_; }
  const std::vector<const DeviceSpec*>& devices() const { return devices_; }
  const std::vector<size_t>& placement() const { return placement_; }
  const std::shared_ptr<BufferPool>& pool() const { return pool_; }

 private:
  Status Place();
  // Whether a compiled model is there and every device uses it.
  bool Cached() const;
  double CompileMicroseconds() const;
  void Store() const;

  std::shared_ptr<const Model> model_;
  std::vector<const DeviceSpec*> devices_;
  bool exact_;
  bool finished_ = false;
  std::string cache_file_;  // empty: no caching
  double timeout_us_ = 0;
  std::vector<size_t> placement_;
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_COMPILATION_H_
