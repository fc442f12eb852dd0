// Rules an operand type must keep by itself, wherever it is used.
#ifndef DEVICE_FARM_SIMULATOR_SRC_OPERAND_RULES_H_
#define DEVICE_FARM_SIMULATOR_SRC_OPERAND_RULES_H_

#include "status.h"
#include "tensor.h"

namespace nnsim {

// Checks the type and turns it into a tensor without data.
Status ToTensor(const ANeuralNetworksOperandType& type, int level, Tensor* tensor);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_OPERAND_RULES_H_
