// A model: operands and operations, built step by step and checked as a whole.
#ifndef DEVICE_FARM_SIMULATOR_SRC_MODEL_H_
#define DEVICE_FARM_SIMULATOR_SRC_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "memory.h"
#include "op_registry.h"
#include "status.h"
#include "tensor.h"

namespace nnsim {

class Model;

enum class Lifetime { kTemporary, kInput, kOutput, kConstant, kOmitted, kModel };

struct Operand {
  Tensor tensor;  // `data` is set for constants
  Lifetime lifetime = Lifetime::kTemporary;
  std::vector<uint32_t> copy;        // small or misaligned constants; words, for alignment
  std::shared_ptr<Mapping> mapping;  // keeps a constant's file mapped
  std::shared_ptr<const Model> model;
  std::shared_ptr<ConstantCache> cache;
};

struct Operation {
  const OpSpec* spec = nullptr;
  int level = 1;     // feature level its code and operand types need
  size_t added = 0;  // position in the order of addOperation
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
};

class Model {
 public:
  // `level`: feature level of the phone; what it does not know is refused.
  explicit Model(int level) : level_(level) {}

  Status AddOperand(const ANeuralNetworksOperandType& type);
  Status SetChannelQuantization(uint32_t index,
                                const ANeuralNetworksSymmPerChannelQuantParams& params);
  Status SetValue(int32_t index, const void* buffer, size_t length);
  Status SetValueFromMapping(int32_t index, std::shared_ptr<Mapping> mapping, size_t offset,
                             size_t length);
  Status SetValueFromModel(int32_t index, std::shared_ptr<const Model> value);
  Status SetExtensionData(int32_t index, const void* data, size_t length);
  Status AddOperation(int32_t code, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs);
  Status IdentifyInputsAndOutputs(std::vector<uint32_t> inputs, std::vector<uint32_t> outputs);
  Status Relax(bool allow);
  // Sorts the operations into run order and checks all that can be known before an execution.
  Status Finish();

  bool finished() const { return finished_; }
  bool relaxed() const { return relaxed_; }
  const std::vector<Operand>& operands() const { return operands_; }
  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<uint32_t>& inputs() const { return inputs_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }

 private:
  Status CheckOpen() const;
  Status CheckSettable(int32_t index, size_t length) const;
  void MakeConstant(Operand* operand, const void* data, size_t length, bool copy);
  Status Sort();
  Status CheckWriters(std::vector<int>* writer) const;
  Status CheckShapes() const;

  int level_;
  bool finished_ = false;
  bool relaxed_ = false;
  bool identified_ = false;
  std::vector<Operand> operands_;
  std::vector<Operation> operations_;
  std::vector<uint32_t> inputs_;
  std::vector<uint32_t> outputs_;
};

// The declared shape admits the inferred one: same rank or none declared, equal where not 0.
bool Admits(const Dims& declared, const Dims& inferred);

}  // namespace nnsim

#endif  // DEVICE_FARM_SIMULATOR_SRC_MODEL_H_
