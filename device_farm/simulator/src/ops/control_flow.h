// The two operations that run other models; the interpreter does, as only it can.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPS_CONTROL_FLOW_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPS_CONTROL_FLOW_H_

namespace nnsim {

constexpr int kIf = 96;
constexpr int kWhile = 97;

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPS_CONTROL_FLOW_H_
